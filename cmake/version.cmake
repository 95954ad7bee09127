# Writes one source file with the version and the git commit, at every build but only if they changed, so that a commit
# recompiles this file alone. Run as a script (-P) it does the writing.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE FLUX_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT FLUX_COMMIT)
    set(FLUX_COMMIT unknown)
  endif()
  configure_file("${CMAKE_CURRENT_LIST_DIR}/version.cc.in" "${OUTPUT}" @ONLY)
  return()
endif()

set(FLUX_VERSION_SOURCE "${PROJECT_BINARY_DIR}/generated/version.cc")
add_custom_target(flux_version BYPRODUCTS "${FLUX_VERSION_SOURCE}"
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${FLUX_VERSION_SOURCE}
          -DFLUX_VERSION=${PROJECT_VERSION} -P "${CMAKE_CURRENT_LIST_DIR}/version.cmake"
  COMMENT "Reading the git commit")

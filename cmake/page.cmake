# Puts the page of `flux report` into one source file, so that the installed command needs no file beside it: style and
# scripts from src/report/page go where the HTML names them. Run as a script (-P) it does the writing.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${SOURCE_DIR}/report.html" page)
  file(READ "${SOURCE_DIR}/report.css" style)
  # The dark colours serve twice: when asked for, and when the system is dark and nothing was asked for.
  string(REGEX MATCH "data-theme=\"dark\"\\] ({[^}]*})" ignored "${style}")
  string(REPLACE "/*DARK*/" "@media (prefers-color-scheme: dark) { :root:not([data-theme]) ${CMAKE_MATCH_1} }" style
         "${style}")
  string(REPLACE "/*STYLE*/" "${style}" page "${page}")
  # Scripts in the order in which the HTML names them.
  string(REGEX MATCHALL "/\\*SCRIPT [a-z_]+\\*/" names "${page}")
  foreach(mark IN LISTS names)
    string(REGEX REPLACE ".* ([a-z_]+)\\*/" "\\1" name "${mark}")
    file(READ "${SOURCE_DIR}/${name}.js" script)
    string(REPLACE "${mark}" "${script}" page "${page}")
  endforeach()
  # The standard promises literals of 64 KiB, so the page comes in pieces of 8000 characters.
  set(pieces "")
  string(LENGTH "${page}" length)
  foreach(at RANGE 0 ${length} 8000)
    string(SUBSTRING "${page}" ${at} 8000 piece)
    string(APPEND pieces "    R\"page(${piece})page\",\n")
  endforeach()
  file(WRITE "${OUTPUT}" "#include \"report/page.h\"

namespace flux {

std::string page() {
  std::string whole;
  for (char const* piece : {
${pieces}  })
    whole += piece;
  return whole;
}

}  // namespace flux
")
  return()
endif()

set(FLUX_PAGE_SOURCE "${PROJECT_BINARY_DIR}/generated/page.cc")
set(page_folder "${PROJECT_SOURCE_DIR}/src/report/page")
file(GLOB page_files CONFIGURE_DEPENDS "${page_folder}/*.html" "${page_folder}/*.css" "${page_folder}/*.js")
add_custom_command(OUTPUT "${FLUX_PAGE_SOURCE}"
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${page_folder} -DOUTPUT=${FLUX_PAGE_SOURCE}
          -P "${CMAKE_CURRENT_LIST_DIR}/page.cmake"
  DEPENDS ${page_files} "${CMAKE_CURRENT_LIST_DIR}/page.cmake"
  COMMENT "Embedding the page of flux report")
add_custom_target(flux_page DEPENDS "${FLUX_PAGE_SOURCE}")

# Warnings, the CPU, sanitizers and ccache: what every target is compiled with.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# Where sanitizers look for errors, -O1 keeps multiplications bearable and line numbers right.
set(flux_sanitize_flags_thread -fsanitize=thread -g -O1)
set(flux_sanitize_flags_address -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1)

# For code that reads options or compares results: its own speed matters to nobody, its compile time to all.
set(flux_light -O1)
if(FLUX_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(flux_light -O0)
endif()

add_library(flux_compiler INTERFACE)
target_compile_features(flux_compiler INTERFACE cxx_std_20)
target_compile_options(flux_compiler INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes its own AVX-512 intrinsics, which start from undefined registers, for uses of uninitialised variables.
  target_compile_options(flux_compiler INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-uninitialized -Wno-maybe-uninitialized -Wno-restrict>)
endif()
if(FLUX_NATIVE)
  target_compile_options(flux_compiler INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(FLUX_SANITIZE)
  if(NOT DEFINED flux_sanitize_flags_${FLUX_SANITIZE})
    message(FATAL_ERROR "FLUX_SANITIZE=${FLUX_SANITIZE} is unknown; allowed are: empty, thread, address")
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flux_sanitize_flags_${FLUX_SANITIZE}}>")
  add_link_options(${flux_sanitize_flags_${FLUX_SANITIZE}})
endif()

# Finds nvcc and CUTLASS. Sets FLUX_CUDA_FOUND; with it, src/kernel adds its sources by flux_add_kernels().
set(FLUX_CUDA_FOUND OFF)
if(FLUX_CUDA STREQUAL "OFF")
  return()
endif()

find_program(FLUX_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT FLUX_NVCC)
  if(NOT FLUX_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "FLUX_CUDA=${FLUX_CUDA} needs nvcc, which is neither in PATH nor in /usr/local/cuda/bin; "
                        "install the CUDA toolkit (12.4 or later) or configure with -DFLUX_CUDA=OFF")
  endif()
  message(STATUS "CUDA: off, no nvcc found")
  return()
endif()

find_path(FLUX_CUTLASS_INCLUDE cutlass/cutlass.h PATHS "${FLUX_CUTLASS_DIR}/include" NO_DEFAULT_PATH NO_CACHE)
if(NOT FLUX_CUTLASS_INCLUDE AND FLUX_FETCH_CUTLASS)
  include(FetchContent)
  # Headers alone: the subdirectory without a CMakeLists.txt keeps CUTLASS's own build out.
  FetchContent_Declare(cutlass GIT_REPOSITORY https://github.com/NVIDIA/cutlass.git GIT_TAG v4.2.0 GIT_SHALLOW ON
                       SOURCE_SUBDIR include)
  FetchContent_MakeAvailable(cutlass)
  set(FLUX_CUTLASS_INCLUDE "${cutlass_SOURCE_DIR}/include")
endif()
if(NOT FLUX_CUTLASS_INCLUDE)
  set(hint "no CUTLASS headers in ${FLUX_CUTLASS_DIR}/include: run scripts/setup.sh, point FLUX_CUTLASS_DIR to a "
           "CUTLASS 4 tree, or configure with -DFLUX_FETCH_CUTLASS=ON")
  if(NOT FLUX_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR ${hint})
  endif()
  message(WARNING "CUDA: off, " ${hint})
  return()
endif()

set(CMAKE_CUDA_COMPILER "${FLUX_NVCC}")
set(CMAKE_CUDA_ARCHITECTURES OFF)  # flux_add_kernels() passes -gencode itself
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
# What ptxas says of each kernel (registers, stack, spills) is kept beside its object, for the tests to read.
list(PREPEND CMAKE_CUDA_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/ptxas-report")
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know yet that nvcc 12 knows C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
set(FLUX_CUDA_FOUND ON)
message(STATUS "CUDA: ${FLUX_NVCC} ${CMAKE_CUDA_COMPILER_VERSION} for ${FLUX_CUDA_ARCHITECTURES}, "
               "CUTLASS in ${FLUX_CUTLASS_INCLUDE}")

# What every .cu file is compiled with, and CUTLASS.
add_library(flux_nvcc INTERFACE)
target_include_directories(flux_nvcc SYSTEM INTERFACE "${FLUX_CUTLASS_INCLUDE}")
target_compile_options(flux_nvcc INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--expt-extended-lambda;-Xptxas=-v;-Xcompiler=-Wall,-Werror;-Werror=all-warnings>")
target_link_libraries(flux_nvcc INTERFACE CUDA::cudart_static)

# "90a-real" -> -gencode arch=compute_90a,code=sm_90a; "90-virtual" -> PTX alone; "90" -> both.
function(flux_gencode result)
  set(flags "")
  foreach(architecture IN LISTS ARGN)
    string(REGEX REPLACE "-(real|virtual)$" "" chip "${architecture}")
    if(NOT architecture MATCHES "-virtual$")
      list(APPEND flags "SHELL:-gencode arch=compute_${chip},code=sm_${chip}")
    endif()
    if(NOT architecture MATCHES "-real$")
      list(APPEND flags "SHELL:-gencode arch=compute_${chip},code=compute_${chip}")
    endif()
  endforeach()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# flux_add_kernels(<name> [CHIPS <chip>...] SOURCES <file.cu>...): kernels of one engine, linked into libflux.
# CHIPS (for example 90a) keeps those of FLUX_CUDA_ARCHITECTURES that the engine can use; without it, all. An engine
# that keeps none is left out. Otherwise host code sees FLUX_WITH_<NAME>=1.
function(flux_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "CHIPS;SOURCES")
  set(architectures ${FLUX_CUDA_ARCHITECTURES})
  if(arg_CHIPS)
    string(REPLACE ";" "|" chips "${arg_CHIPS}")
    list(FILTER architectures INCLUDE REGEX "^(${chips})(-real|-virtual)?$")
  endif()
  if(NOT architectures)
    message(STATUS "CUDA: no kernels of ${name}, FLUX_CUDA_ARCHITECTURES has none of ${arg_CHIPS}")
    return()
  endif()
  flux_gencode(gencode ${architectures})
  add_library(flux_${name} OBJECT ${arg_SOURCES})
  target_include_directories(flux_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(flux_${name} PRIVATE ${gencode})
  target_link_libraries(flux_${name} PRIVATE flux_nvcc)
  string(TOUPPER ${name} upper)
  target_sources(flux PRIVATE $<TARGET_OBJECTS:flux_${name}>)
  target_compile_definitions(flux PUBLIC FLUX_WITH_${upper}=1)
  target_compile_definitions(flux_nvcc INTERFACE FLUX_WITH_${upper}=1)
endfunction()

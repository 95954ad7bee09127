# flux_add_library(<name>): libflux out of the rooms in src/. The same sources make `flux` and the chaos variant.
find_package(Threads REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
set(flux_fmt fmt::fmt)
if(SKBUILD)  # a wheel needs no library that is not everywhere
  set(flux_fmt fmt::fmt-header-only)
endif()

if(NOT FLUX_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  if(FLUX_MPI STREQUAL "AUTO")
    find_package(MPI COMPONENTS CXX)
  else()
    find_package(MPI REQUIRED COMPONENTS CXX)
  endif()
endif()

# Every room's .cc files. Files that need CUDA stand in src/kernel, src/engine/sm* and src/world/cuda.
file(GLOB flux_sources CONFIGURE_DEPENDS src/*/*.cc src/engine/host/*.cc)
list(FILTER flux_sources EXCLUDE REGEX "/src/kernel/")

function(flux_add_library name)
  add_library(${name} SHARED ${flux_sources} "${FLUX_VERSION_SOURCE}" "${FLUX_PAGE_SOURCE}")
  add_dependencies(${name} flux_version flux_page)
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PUBLIC flux_compiler Threads::Threads
                        PRIVATE Eigen3::Eigen ${flux_fmt} nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(MPI_CXX_FOUND)
    target_compile_definitions(${name} PUBLIC FLUX_WITH_MPI=1)
    target_link_libraries(${name} PRIVATE MPI::MPI_CXX)
  endif()
endfunction()

# flux_add_cuda(<library>): its CUDA worlds and, from src/kernel, its kernels.
function(flux_add_cuda name)
  file(GLOB on_gpu CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/world/cuda/*.cc ${PROJECT_SOURCE_DIR}/src/op/gpu/*.cc)
  target_sources(${name} PRIVATE ${on_gpu})
  target_compile_definitions(${name} PRIVATE FLUX_WITH_CUDA=1)
  target_link_libraries(${name} PRIVATE CUDA::cudart_static)
  if(EXISTS "${PROJECT_SOURCE_DIR}/src/kernel/CMakeLists.txt")
    add_subdirectory(${PROJECT_SOURCE_DIR}/src/kernel ${PROJECT_BINARY_DIR}/kernel)
  endif()
endfunction()

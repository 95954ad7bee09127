# Tests, examples and benchmarks, for as many rooms as there are. `ctest` runs one process per room, which leaves its
# single cases in results/<room>.xml (JUnit); scripts/summary.py counts them.
find_package(GTest REQUIRED)
find_package(benchmark QUIET)
set(results ${PROJECT_BINARY_DIR}/results)

# flux_add_test_room(<room> <library>): test/<room>/*.cc as one executable. A room may have a main of its own.
# The rooms that run the operators share the scenario list of test/op.
function(flux_add_test_room room library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${room}/*.cc)
  if(room MATCHES "^(chaos|gpu|world)$")  # rooms that run the scenario list too
    list(APPEND sources ${PROJECT_SOURCE_DIR}/test/op/scenario.cc)
  endif()
  if(room STREQUAL gpu)  # ranks as processes there too: the same main, other programs
    list(APPEND sources ${PROJECT_SOURCE_DIR}/test/world/main.cc ${PROJECT_SOURCE_DIR}/test/world/program.cc)
  endif()
  file(GLOB cases CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${room}/*_test.cc)
  if(NOT cases)
    return()
  endif()
  if(room MATCHES "^(chaos|gpu|world)$" AND EXISTS ${PROJECT_SOURCE_DIR}/test/op/scenario.cc)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/test/op/scenario.cc)
  endif()
  add_executable(test_${room} ${sources})
  set_target_properties(test_${room} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_include_directories(test_${room} PRIVATE ${PROJECT_SOURCE_DIR}/test ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${room} PRIVATE ${library} GTest::gtest Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json)
  target_compile_definitions(test_${room} PRIVATE FLUX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(test_${room} PRIVATE ${flux_light})
  if(NOT room STREQUAL gpu AND NOT EXISTS ${PROJECT_SOURCE_DIR}/test/${room}/main.cc)
    target_link_libraries(test_${room} PRIVATE GTest::gtest_main)
  endif()
  if(room STREQUAL gpu)
    target_link_libraries(test_${room} PRIVATE CUDA::cudart_static)
  endif()
  if(MPI_CXX_FOUND)
    target_compile_definitions(test_${room} PRIVATE FLUX_MPIRUN="${MPIEXEC_EXECUTABLE}")
  endif()
  if(TARGET flux_cli)
    target_compile_definitions(test_${room} PRIVATE FLUX_CLI="$<TARGET_FILE:flux_cli>")
    add_dependencies(test_${room} flux_cli)
  endif()
  add_test(NAME ${room} COMMAND test_${room} --gtest_output=xml:${results}/${room}.xml
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Under mpirun: as root in a container, more ranks than cores, no remote shell.
  set(seconds 300)
  if(room STREQUAL gpu)  # processes on one GPU are served in turn
    set(seconds 900)
  endif()
  if(FLUX_SANITIZE)  # without optimisation the simulator takes twenty times as long
    set(seconds 1800)
  endif()
  set_tests_properties(${room} PROPERTIES TIMEOUT ${seconds} ENVIRONMENT
    "FLUX_PLAN_CACHE=none;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_plm_rsh_agent=")
endfunction()

file(GLOB rooms RELATIVE ${PROJECT_SOURCE_DIR}/test CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/*/*_test.cc)
list(TRANSFORM rooms REPLACE "/.*" "")
list(REMOVE_DUPLICATES rooms)
list(REMOVE_ITEM rooms chaos)
if(NOT FLUX_CUDA_FOUND)
  list(REMOVE_ITEM rooms gpu)
endif()
foreach(room IN LISTS rooms)
  flux_add_test_room(${room} flux)
endforeach()
if(TARGET test_bench)
  target_link_libraries(test_bench PRIVATE flux_bench)
endif()

# Worlds of processes on GPUs and their operators, where a GPU is played by memory of the host: it stands in for the
# CUDA runtime and for our kernels.
if(FLUX_CUDA_FOUND)
  set(on_fake_gpu ${flux_sources})
  list(FILTER on_fake_gpu INCLUDE REGEX "/src/(engine|io|op|plan|trace|world)/|/report/budget")
  file(GLOB on_gpu CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/world/cuda/*.cc ${PROJECT_SOURCE_DIR}/src/op/gpu/*.cc)
  add_library(flux_on_fake_gpu SHARED ${on_fake_gpu} ${on_gpu})
  target_include_directories(flux_on_fake_gpu PUBLIC include src)
  target_include_directories(flux_on_fake_gpu SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(flux_on_fake_gpu PUBLIC flux_compiler Threads::Threads
                        PRIVATE Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
  target_compile_definitions(flux_on_fake_gpu PRIVATE FLUX_WITH_CUDA=1 FLUX_WITH_KERNELS=1 FLUX_WITH_SM90=1)
  target_compile_options(flux_on_fake_gpu PRIVATE ${flux_light})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/gpu/fake/*.cc)
  # The suite of operators too, of all that a GPU times: its kernels are played as well.
  set(bench_on_fake_gpu overlap_suite overlap_problem overlap_methods subject collectives exchange chunked lockstep problem
                        result ours cublaslt graph_timing timing)
  list(TRANSFORM bench_on_fake_gpu REPLACE "(.+)" "bench/gemm/\\1.cc")
  list(APPEND bench_on_fake_gpu bench/workloads.cc bench/case.cc bench/placed.cc bench/plain_gemm.cc
       bench/reference.cc)
  add_executable(test_fake_gpu ${sources} test/gpu/scenario_list.cc test/op/scenario.cc test/world/main.cc
                 test/world/program.cc ${bench_on_fake_gpu})
  set_target_properties(test_fake_gpu PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_include_directories(test_fake_gpu PRIVATE test ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_fake_gpu PRIVATE flux_on_fake_gpu GTest::gtest Eigen3::Eigen fmt::fmt
                        nlohmann_json::nlohmann_json)
  target_compile_options(test_fake_gpu PRIVATE ${flux_light})
  add_library(flux_fake_nccl SHARED test/gpu/fake/nccl/nccl.cc)
  set_target_properties(flux_fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/fake_nccl)
  target_link_libraries(flux_fake_nccl PRIVATE flux_compiler)
  target_compile_definitions(test_fake_gpu PRIVATE FLUX_FAKE_NCCL="${PROJECT_BINARY_DIR}/test/fake_nccl")
  add_library(flux_fake_cublaslt SHARED test/gpu/fake/cublaslt/cublaslt.cc)
  set_target_properties(flux_fake_cublaslt PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/fake_cublaslt)
  target_include_directories(flux_fake_cublaslt SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(flux_fake_cublaslt PRIVATE flux_compiler)
  target_compile_definitions(test_fake_gpu PRIVATE
    FLUX_FAKE_CUBLASLT="$<TARGET_FILE:flux_fake_cublaslt>" FLUX_WORKLOADS="${PROJECT_SOURCE_DIR}/bench/workloads.json")
  add_dependencies(test_fake_gpu flux_fake_nccl flux_fake_cublaslt)
  add_test(NAME fake_gpu COMMAND test_fake_gpu --gtest_output=xml:${results}/fake_gpu.xml)
  set_tests_properties(fake_gpu PROPERTIES TIMEOUT 300 ENVIRONMENT FLUX_PLAN_CACHE=none)
endif()

# The library with planted bugs, random delays and ThreadSanitizer, beside the product build.
file(GLOB chaos_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/chaos/*_test.cc)
if(FLUX_CHAOS AND chaos_tests)
  flux_add_library(flux_chaos)
  target_compile_definitions(flux_chaos PUBLIC FLUX_CHAOS=1)
  target_compile_options(flux_chaos PUBLIC ${flux_sanitize_flags_thread})
  target_link_options(flux_chaos PUBLIC ${flux_sanitize_flags_thread})
  flux_add_test_room(chaos flux_chaos)
endif()

# Fuzz targets test/fuzz/<name>_fuzz.cc: with clang a libFuzzer executable, otherwise a runner over the corpus
# test/fuzz/corpus/<name>/. Either way the test runs the corpus.
file(GLOB fuzz_sources CONFIGURE_DEPENDS test/fuzz/*_fuzz.cc)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_fuzz" "" subject ${name})
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_link_libraries(${name} PRIVATE flux)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${subject})
  else()
    target_sources(${name} PRIVATE test/fuzz/main.cc)
    add_test(NAME ${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${subject})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endforeach()

# Examples: examples/<name>.cc, or .cu for compute capability 9.0, is one executable and one test.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.cc)
if(TARGET flux_sm90)
  file(GLOB cuda_example_sources CONFIGURE_DEPENDS examples/*.cu)
  list(APPEND example_sources ${cuda_example_sources})
endif()
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE flux)
  if(source MATCHES "\\.cu$")
    target_link_libraries(example_${name} PRIVATE flux_nvcc)
    target_compile_options(example_${name} PRIVATE "SHELL:-gencode arch=compute_90a,code=sm_90a" -Xcompiler=-O1)
  endif()
  add_test(NAME example_${name} COMMAND example_${name})
  set_tests_properties(example_${name} PROPERTIES TIMEOUT 120)
endforeach()

file(GLOB benchmark_sources CONFIGURE_DEPENDS bench/*_benchmark.cc)
if(benchmark_sources AND benchmark_FOUND)
  add_executable(flux_benchmark ${benchmark_sources})
  target_link_libraries(flux_benchmark PRIVATE flux_bench Eigen3::Eigen benchmark::benchmark_main)
endif()

# Python tests test/<room>/*_test.py, among them the rules of the house; they need pytest, which scripts/setup.sh puts
# into .venv.
find_program(FLUX_PYTHON python3 PATHS ${PROJECT_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
find_program(FLUX_PYTHON python3)
execute_process(COMMAND ${FLUX_PYTHON} -c "import pytest" RESULT_VARIABLE no_pytest ERROR_QUIET)
file(GLOB python_rooms RELATIVE ${PROJECT_SOURCE_DIR}/test CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/*/*_test.py)
list(TRANSFORM python_rooms REPLACE "/.*" "")
list(REMOVE_DUPLICATES python_rooms)
if(no_pytest AND python_rooms)
  message(STATUS "Tests: without ${python_rooms}, no pytest found (scripts/setup.sh test brings it)")
  set(python_rooms)
endif()
if(FLUX_SANITIZE)
  list(REMOVE_ITEM python_rooms house report)  # read sources, and a page that is the same from any build
endif()
if(NOT FLUX_CUDA_FOUND)
  list(REMOVE_ITEM python_rooms kernel)
endif()
if(NOT FLUX_PACKAGE)
  list(REMOVE_ITEM python_rooms python)
endif()
foreach(room IN LISTS python_rooms)
  add_test(NAME python_${room} COMMAND ${FLUX_PYTHON} -B -m pytest -q -p no:cacheprovider
           ${PROJECT_SOURCE_DIR}/test/${room} --junitxml=${results}/python_${room}.xml)
  set(seconds 300)
  if(room STREQUAL python)  # programs of several processes that each import torch
    set(seconds 900)
  endif()
  set_tests_properties(python_${room} PROPERTIES TIMEOUT ${seconds}
                       ENVIRONMENT "FLUX_BUILD_DIR=${PROJECT_BINARY_DIR};FLUX_CLI=${PROJECT_BINARY_DIR}/flux;PYTHONPATH=${PROJECT_BINARY_DIR}/python")
endforeach()

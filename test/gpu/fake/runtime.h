#pragma once
// A GPU played by memory of the host, for tests of how worlds of processes come to be and end, where there is no GPU:
// the functions of the CUDA runtime and driver that src/world/cuda calls. Memory of the GPU is a file without a name,
// so that other processes can map it. Kernels and streams do at once what they are told.
//
// FLUX_TEST_FAULT plants failures, separated by spaces: RANK:NAME:NTH, for example 1:cuMemCreate:2, makes the call
// number NTH (from 0) of that function fail on that rank; RANK * is every rank, NTH * is every call. Two names are no
// functions: `bit` flips one in a copy, `stuck` is a stream that never comes to its end.
#include <string>

namespace flux::test {

/// What has been made in this process and not been let go: "maps 2, mallocs 1"; empty: nothing.
std::string left_on_fake_gpu();

}  // namespace flux::test

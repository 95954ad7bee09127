#pragma once
// A GPU played by memory of the host, for tests of worlds of processes and of their operators where there is no GPU:
// the functions of the CUDA runtime and driver that src/world/cuda calls; kernels.cc has those of src/kernel. Memory of
// the GPU is a file without a name, so that other processes can map it. Kernels and streams do at once what they are
// told, but for GEMMs.
//
// FLUX_TEST_FAULT plants failures, separated by spaces: RANK:NAME:NTH, for example 1:cuMemCreate:2, makes the call
// number NTH (from 0) of that function fail on that rank; RANK * is every rank, NTH * is every call. Two names are no
// functions: `bit` flips one in a copy, `stuck` is a stream that never comes to its end.
#include <string>

namespace flux::test {

/// What has been made in this process and not been let go: "maps 2, mallocs 1"; empty: nothing.
std::string left_on_fake_gpu();

/// Whether this call of the function is to fail.
bool fails(std::string const& name);
/// Waits for the default stream.
void land();

/// From here on what is enqueued is done at once as before, but its events say that it is not over; until it goes on.
void hold_fake_gpu();
void let_fake_gpu_go();
/// Runs what kernels.cc has enqueued and not run: on `stream`, or all. What waits for a word or an event calls it.
void run_gemms(void* stream = nullptr);

/// Whether streams say that they are captured. What is enqueued is done all the same.
void capture_on_fake_gpu(bool captured);

}  // namespace flux::test

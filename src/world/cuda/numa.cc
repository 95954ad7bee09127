#include "world/cuda/numa.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "world/ring_order.h"

namespace flux {

int numa_node(std::string id, std::filesystem::path const& folder) {
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  int node = kUnknownNode;
  std::ifstream file(folder / id / "numa_node");
  return file >> node && node >= 0 ? node : kUnknownNode;  // systems without nodes say -1
}

std::vector<int> numa_nodes() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0, cudaGetLastError();
  std::vector<int> nodes(count, kUnknownNode);
  for (int i = 0; i < count; ++i) {
    char id[32] = {};
    if (cudaDeviceGetPCIBusId(id, sizeof id, i) == cudaSuccess)
      nodes[i] = numa_node(id);
    else
      cudaGetLastError();
  }
  return nodes;
}

}  // namespace flux

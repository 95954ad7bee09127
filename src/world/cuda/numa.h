#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace flux {

/// The NUMA node of each visible GPU, kUnknownNode where the system does not say.
std::vector<int> numa_nodes();

/// That of one device by its PCI bus id, "0000:0F:00.0": what the system wrote in `folder`, a folder a device.
int numa_node(std::string pci_bus_id, std::filesystem::path const& folder = "/sys/bus/pci/devices");

}  // namespace flux

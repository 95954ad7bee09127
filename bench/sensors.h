#pragma once
// Clocks, power and temperature of a GPU, as its driver tells them. Read, never set.
#include <optional>
#include <string>

#include "report/result_file.h"

namespace flux::bench {

/// Of the GPU with this PCI bus id ("0000:0F:00.0"). Nothing where the driver's library (NVML, opened at run time) is
/// not there or does not know the GPU; what it does not tell has no value.
std::optional<Sensors> read_sensors(std::string const& pci_bus_id);

}  // namespace flux::bench

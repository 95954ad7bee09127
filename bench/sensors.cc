#include "bench/sensors.h"

#include <dlfcn.h>

namespace flux::bench {
namespace {

// The few words of nvml.h that are needed; they have been the same since its second version.
using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
constexpr unsigned kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

template <class F>
F* function(void* library, char const* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

}  // namespace

std::optional<Sensors> read_sensors(std::string const& pci_bus_id) {
  static void* const library = [] {
    void* const opened = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    auto const start = opened ? function<int()>(opened, "nvmlInit_v2") : nullptr;
    return start && start() == kSuccess ? opened : nullptr;
  }();
  if (!library) return {};
  Device device = nullptr;
  auto const find = function<int(char const*, Device*)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  if (!find || find(pci_bus_id.c_str(), &device) != kSuccess) return {};
  auto value = [&](char const* name, double unit, auto... kind) -> std::optional<double> {
    auto const get = function<int(Device, decltype(kind)..., unsigned*)>(library, name);
    unsigned read = 0;
    if (!get || get(device, kind..., &read) != kSuccess) return {};
    return read * unit;
  };
  Sensors sensors;
  sensors.clock_mhz = value("nvmlDeviceGetClockInfo", 1, kClockSm);
  sensors.memory_clock_mhz = value("nvmlDeviceGetClockInfo", 1, kClockMemory);
  sensors.power_w = value("nvmlDeviceGetPowerUsage", 1e-3);
  sensors.temperature_c = value("nvmlDeviceGetTemperature", 1, kTemperatureGpu);
  return sensors;
}

}  // namespace flux::bench

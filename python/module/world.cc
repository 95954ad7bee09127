// Worlds: ranks that are threads of this process, or processes that find each other by a function of Python's, by MPI
// or by `flux launch`.
#include "world.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <thread>

#include "world/gpu.h"
#include "world/team.h"

namespace flux::python {
namespace {

WorldOptions options_of(double warn_seconds, double limit_seconds, std::string plan_cache, double tune_seconds,
                        double link_gbps, double link_latency_us, int device) {
  WorldOptions options;
  options.warn_seconds = warn_seconds, options.limit_seconds = limit_seconds;
  options.plan_cache = std::move(plan_cache), options.tune_seconds = tune_seconds;
  options.link = {link_gbps, link_latency_us};
  options.device = device == kHostMemory ? kHostEngine : device;
  return options;
}

/// The ranks of this process: on the host, on a GPU each (`devices`), or all on GPU 0 (`shared_gpu`).
std::vector<std::unique_ptr<PythonWorld>> local(int ranks, std::string const& on, WorldOptions const& options) {
  if (ranks < 1 || ranks > kMaxRanks)
    throw Error(ErrorKind::kInvalid, "a world has 1 to 16 ranks, not " + std::to_string(ranks));
  if (on != "host" && on != "devices" && on != "shared_gpu")
    throw Error(ErrorKind::kInvalid, "ranks cannot be on `" + on + "`; allowed are host, devices and shared_gpu");
  auto point = std::make_shared<MeetingPoint>(ranks);
  std::vector<std::unique_ptr<PythonWorld>> worlds(ranks);
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        std::shared_ptr<Gpu> gpu;
        if (on == "devices") gpu = open_gpu(rank, 1);
        if (on == "shared_gpu") gpu = open_gpu(0, ranks);
        auto made = std::make_unique<PythonWorld>();
        made->device = on == "host" ? kHostMemory : on == "devices" ? rank : 0;
        made->point = point;
        auto bootstrap = std::make_unique<ThreadBootstrap>(point, rank, ranks);
        Nodes const nodes = gpu ? Nodes(ranks) : find_nodes(*bootstrap, options);
        made->world = std::make_unique<World>(
            std::make_unique<Team>(std::move(bootstrap), nodes, MemoryKind::kHeap, options, std::move(gpu)));
        worlds[rank] = std::move(made);
      } catch (...) {
        point->cancel();
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  return worlds;
}

/// Any function of Python's that gathers bytes. It is called, and let go of, with the interpreter's lock.
std::unique_ptr<Bootstrap> bootstrap_of(int rank, int ranks, nb::object gather) {
  auto shared = std::shared_ptr<nb::object>(new nb::object(std::move(gather)), [](nb::object* object) {
    nb::gil_scoped_acquire const lock;
    delete object;
  });
  return bootstrap_from(rank, ranks, [shared](std::string_view mine) {
    nb::gil_scoped_acquire const lock;
    std::vector<std::string> all;
    for (nb::handle one : (*shared)(nb::bytes(mine.data(), mine.size()))) {
      auto const bytes = nb::cast<nb::bytes>(one);
      all.emplace_back(bytes.c_str(), bytes.size());
    }
    return all;
  });
}

std::unique_ptr<PythonWorld> processes(std::unique_ptr<Bootstrap> bootstrap, WorldOptions const& options, int device) {
  auto made = std::make_unique<PythonWorld>();
  made->world = World::processes(std::move(bootstrap), options);
  made->device = device;
  return made;
}

}  // namespace

void PythonWorld::fail() const {
  if (point) point->cancel();
  world->team().fail();
}

void bind_world(nb::module_& module) {
  using Lone = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<WorldOptions>(module, "WorldOptions")
      .def(
          "__init__",
          [](WorldOptions* self, double warn_seconds, double limit_seconds, std::string const& plan_cache,
             double tune_seconds, double link_gbps, double link_latency_us, int device) {
            new (self) WorldOptions(
                options_of(warn_seconds, limit_seconds, plan_cache, tune_seconds, link_gbps, link_latency_us, device));
          },
          nb::kw_only(), nb::arg("warn_seconds") = 30.0, nb::arg("limit_seconds") = 600.0, nb::arg("plan_cache") = "",
          nb::arg("tune_seconds") = 0.0, nb::arg("link_gbps") = 0.0, nb::arg("link_latency_us") = 0.0,
          nb::arg("device") = kHostMemory);
  nb::class_<PythonWorld>(module, "World")
      .def_prop_ro("rank", [](PythonWorld const& w) { return w.world->rank(); })
      .def_prop_ro("size", [](PythonWorld const& w) { return w.world->size(); })
      .def_prop_ro("kind", [](PythonWorld const& w) { return std::string(w.world->kind()); })
      .def_ro("device", &PythonWorld::device)
      .def_prop_ro("links",
                   [](PythonWorld const& w) {
                     nb::list links;
                     for (LinkProof const& link : w.world->links())
                       links.append(nb::make_tuple(link.from, link.to, link.way, link.works, link.reason));
                     return links;
                   })
      .def(
          "barrier", [](PythonWorld& w) { w.world->barrier(); }, Lone())
      .def("check", [](PythonWorld const& w) { w.world->check(); })
      .def("fail", &PythonWorld::fail, Lone())
      .def("activate", [](PythonWorld& w) {
        if (Gpu const* gpu = w.world->team().gpu()) gpu->activate();
      });
  module.def("local", &local, nb::arg("ranks"), nb::arg("on"), nb::arg("options"), Lone());
  module.def(
      "from_gather",
      [](int rank, int ranks, nb::object gather, WorldOptions const& options) {
        auto bootstrap = bootstrap_of(rank, ranks, std::move(gather));
        nb::gil_scoped_release const free;
        return processes(std::move(bootstrap), options, options.device);
      },
      nb::arg("rank"), nb::arg("ranks"), nb::arg("gather"), nb::arg("options"));
  module.def(
      "from_environment",
      [](bool mpi, WorldOptions const& options) {
        return processes(mpi ? bootstrap_from_mpi() : bootstrap_from_launcher(), options, options.device);
      },
      nb::arg("mpi"), nb::arg("options"), Lone());
}

}  // namespace flux::python

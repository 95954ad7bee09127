#pragma once
// One launch on the host: the loop of src/tile on every worker of a rank.
#include "engine/host/engine.h"
#include "engine/host/workers.h"

namespace flux::host {

/// `stamps`: one vector a worker, or null where no timeline is asked for.
template <class Gate, class Route>
void run_tiles(Workers& workers, Launch const& launch, Schedule const& order, Gate const& gate, Route const& route,
               std::vector<std::vector<Stamp>>* stamps) {
  auto with = [&]<class T>(T*) {
    workers.run([&](int worker) {
      Engine<T> engine(launch, worker, workers.count(), stamps ? &stamps->at(worker) : nullptr);
      run(engine, order, gate, route);
    });
  };
  if (adds_in_double(launch.weight.dtype))
    with(static_cast<double*>(nullptr));
  else
    with(static_cast<float*>(nullptr));
}

}  // namespace flux::host

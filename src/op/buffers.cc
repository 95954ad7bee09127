#include "op/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "op/checks.h"
#include "world/together.h"

namespace flux {

int64_t Buffers::bytes(int64_t data_bytes) { return kHeadBytes + padded(std::max<int64_t>(data_bytes, 1)); }

Buffers::Buffers(Team& team, int count, int64_t data_bytes, Extra const& extra, bool shared)
    : team_(team),
      count_(count),
      shared_(shared),
      data_bytes_(padded(std::max<int64_t>(data_bytes, 1))),
      extra_(extra),
      number_(team.next_operator()),
      heads_(team.allocate(count * kHeadBytes, Use::kWords)),
      data_(team.allocate(count * data_bytes_, Use::kData)) {
  Word granted[kMaxRanks];
  std::fill_n(granted, kMaxRanks, kGranted);
  for (int b = 0; b < count; ++b) {
    Word* const mine = credits(b).at(team.rank());
    if (Gpu* const gpu = team.gpu())
      gpu->copy(mine, granted, team.size() * int64_t{sizeof(Word)});
    else
      for (int p = 0; p < team.size(); ++p) store_release(mine + p, kGranted);
  }
  if (team.gpu() && extra.scratch_bytes > 0) scratch_ = team.gpu()->allocate(extra.scratch_bytes);
  if (team.gpu() && extra.packet_bytes > 0) {
    packets_ = team.allocate(extra.packet_bytes, Use::kPackets);
    packet_calls_ = team.gpu()->allocate(2 * sizeof(Word));
  }
  team.all_gather({});  // no rank calls before all credits stand
}

void Buffers::admit(Plan const& plan, int64_t data_bytes, Extra const& extra) {
  if (!shared_) return;
  require(data_bytes <= data_bytes_ && extra.scratch_bytes <= extra_.scratch_bytes &&
              extra.packet_bytes <= extra_.packet_bytes,
          "the workspace has buffers of {} bytes, {} bytes of scratch and {} of packets; this operator needs {}, {} "
          "and {}: "
          "make it with a need that covers() all operators",
          data_bytes_, extra_.scratch_bytes, extra_.packet_bytes, data_bytes, extra.scratch_bytes, extra.packet_bytes);
  require(plan.buffers == count_, "the workspace has {} buffers and the plan buffers={}; give all the same", count_,
          plan.buffers);
  require(plan.route != RouteKind::kSum || !plan.fused,
          "route=sum adds to what its buffers hold and shares them with nobody; use route=push or leave out the "
          "workspace");
  require(lane_ < 0 || lane_ == plan.lane,
          "the workspace is used on lane {} and the plan says lane={}; operators called "
          "side by side need workspaces of their own",
          lane_, plan.lane);
  lane_ = plan.lane;
}

void require_room(Team& team, std::string_view what, int64_t bytes) {
  if (team.gpu() && team.gpu()->mirrored()) return;
  together(team.bootstrap(), team.options().limit_seconds, [&] {
    int64_t const room = team.gpu() ? team.gpu()->room() : available_bytes() / team.nodes().size();
    if (bytes > room)
      throw Error(ErrorKind::kDevice,
                  fmt::format("{} needs {} bytes of {} memory on each rank and {} are free for it; use fewer rows, "
                              "buffers=1 in the plan, or one Workspace for several operators",
                              what, bytes, team.gpu() ? "GPU" : "this machine's", room));
  });
}

// ---- Workspace ----

MemoryNeed& MemoryNeed::cover(MemoryNeed const& other) {
  buffers = std::max(buffers, other.buffers), buffer = std::max(buffer, other.buffer);
  scratch = std::max(scratch, other.scratch), packets = std::max(packets, other.packets), own += other.own;
  return *this;
}

Workspace::Workspace(World& world, MemoryNeed const& need) {
  require(need.buffers >= 1 && need.buffers <= 64 && need.buffer >= 0 && need.scratch >= 0 && need.packets >= 0,
          "a workspace of {} buffers of {} bytes, {} of scratch and {} of packets was asked for; buffers are 1 to 64, "
          "bytes 0 or more",
          need.buffers, need.buffer, need.scratch, need.packets);
  require_room(world.team(), "a workspace", need.total() - need.own);
  buffers_ = std::make_shared<Buffers>(world.team(), need.buffers, need.buffer,
                                       Buffers::Extra{need.scratch, need.packets}, true);
}
Workspace::~Workspace() = default;

}  // namespace flux

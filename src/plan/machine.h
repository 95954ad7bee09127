#pragma once
// A machine as the planner sees it: a value of some twenty numbers. So a laptop can plan for eight H800s.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tile_row.h"

namespace flux {

/// How ranks reach each other. `kHost` is PCIe where GPUs do not reach each other's memory and meet in the host's: what
/// goes is copied there and from there. `kDeclared` is the host worlds' link, which is none.
enum class LinkKind { kNvlink, kPcie, kHost, kDeclared };
std::string_view name(LinkKind kind);  ///< `nvlink`, `pcie`, `host`, `declared`
inline bool across_pcie(LinkKind kind) { return kind == LinkKind::kPcie || kind == LinkKind::kHost; }

std::string_view name(EngineKind kind);  ///< `sm90`, `sm80`, `host`

/// Rates in 10^9 bytes/s, one way, of one rank, while the other direction is as busy.
struct LinkRates {
  LinkKind kind = LinkKind::kNvlink;
  double push_gbps = 0;   ///< copy engines that write
  double pull_gbps = 0;   ///< copy engines that read
  double store_gbps = 0;  ///< tiles that a GEMM stores at a peer
  double load_gbps = 0;   ///< loads of a kernel
  double block_gbps = 0;  ///< copies made by blocks of the GPU, as many as it takes
  double start_us = 0;    ///< before the first copy of several
  double copy_us = 0;     ///< what a copy costs its engine beside its bytes
  double word_us = 0;     ///< from the end of a copy until the word behind it is set; the engine goes on
  double flag_us = 0;     ///< from a word set at one rank to its waiter at another
  /// What NCCL or its like reaches: bytes that a rank sends, over the time beside `collective_us`.
  double collective_gbps = 0;
  double collective_us = 0;
  double beside = 1;  ///< the rate of copies while the GEMM runs, as a part of their rate alone
  bool operator==(LinkRates const&) const = default;
};

struct Machine {
  static constexpr int kSchema = 2;

  std::string name;
  std::string source;  ///< where the numbers come from, in a sentence
  EngineKind engine = EngineKind::kSm90;
  int processors = 0;
  double products = 0;       ///< multiply-adds a cycle and processor, 16-bit operands
  double clock_mhz = 0;      ///< at which the cycles of the engine's tiles pass while the GPU is not held back by power
  double sustained_mhz = 0;  ///< the same while GEMMs run all the time
  double library_speed = 1;  ///< of the best library GEMM, over our engine's
  double memory_gbps = 0;    ///< read and write together
  double l2_bytes = 50e6;    ///< the cache that all processors share; a file need not say it
  int shared_bytes = 227 * 1024;  ///< that one block may have; a file need not say it
  bool fp8 = true;                ///< whether it multiplies fp8; a file need not say it
  double gemm_us = 0;             ///< a GEMM beside its tiles: launch, first operands, last store
  double call_us = 0;             ///< a fused call beside copies, GEMM and sums
  double beside = 1;              ///< the rate of tiles while copies run, as a part of their rate alone
  bool mirror = false;            ///< one rank of a world whose others are played: docs/measuring.md
  LinkRates link;
  // Between nodes. A file need not say any of it; without a rate the machine plans for one node.
  int node_ranks = 8;   ///< ranks of a node
  double nic_gbps = 0;  ///< of a rank's network interface, one way, while the other is as busy; 0: there is none
  double nic_us = 0;    ///< from a transfer's last byte to its waiter on the other node

  /// Nodes that so many ranks take.
  int nodes_of(int ranks) const { return nic_gbps > 0 ? (ranks + node_ranks - 1) / node_ranks : 1; }

  bool operator==(Machine const&) const = default;
};

/// `text` as a JSON object and back. Throws Error{kInvalid}, one sentence that names the field and what is allowed.
std::string to_json(Machine const& machine);
Machine parse_machine(std::string_view text, std::string_view name);

/// Those that ship with FLUX.
std::vector<Machine> const& named_machines();

/// One of them, or one read from the file of that name. Throws Error{kInvalid}.
Machine find_machine(std::string const& name_or_file);

/// What a tuned choice depends on, and nothing that two measurements of like machines differ in:
/// `sm90 132 processors nvlink`.
std::string key(Machine const& machine);

}  // namespace flux

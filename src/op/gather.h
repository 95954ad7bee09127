#pragma once
// The all-gather of AG+GEMM as a list of copies, for whoever performs them: threads on the host, copy engines on GPUs.
#include <vector>

#include "flux/op.h"
#include "flux/plan.h"
#include "tile/gate.h"
#include "world/copy_engine.h"
#include "world/nodes.h"

namespace flux {

/// How m rows of k elements come, and how many words that takes at most for up to `max_m` rows.
ArrivalWords arrival_words(int64_t m, int64_t k, int ranks, int64_t unit, Plan const& plan);
int64_t most_arrival_words(int64_t max_m, int64_t k, int ranks, int64_t unit, Plan const& plan);

/// GPUs copy rows in units of 16 bytes.
void require_k_on_gpu(AllGatherGemm::Shape const& shape);

struct Gather {
  int rank = 0;
  ArrivalWords layout = {};
  Plan plan = {};
  Word goal = 0;
  Symmetric<std::byte> buffers = {};  // at each rank: [m, k]
  std::byte const* own = nullptr;     // this rank's rows, where pushes read them: in its buffer, or x itself
  int64_t own_stride = 0;             // bytes
  Symmetric<Word> words = {};         // at each rank, as `layout` says
  Word const* readable = nullptr;     // ours, one a source: what a pull waits for first, or none
  int64_t row_bytes = 0, element_bytes = 0;
  // Where ranks meet in host memory: at each rank a box for its own rows, which the others fetch from there, and our
  // words, as `layout` says, by which they tell that it is filled. `buffers` and `words` at this rank are its GPU's.
  Symmetric<std::byte> boxes = {};
  Word* filled = nullptr;
};

/// Every copy of this rank, in the order in which its receivers want them.
std::vector<Transfer> copies(Gather const& gather);
/// Through host memory: this rank's rows into its box, each piece told to all others; and theirs from their boxes.
std::vector<Transfer> to_box(Gather const& gather);
std::vector<Transfer> from_boxes(Gather const& gather);
/// Over several nodes a rank sends its shard to its node and along its rails, and hands on to its node what comes along
/// them, piece by piece: copies of the shard within the node; of what comes, in the order in which it does; what goes
/// to a peer of the rail; what comes from there.
std::vector<Transfer> copies_in_node(Gather const& gather, Nodes const& nodes);
std::vector<Transfer> handed_on(Gather const& gather, Nodes const& nodes);
std::vector<Transfer> sent_along_rail(Gather const& gather, int peer);
std::vector<Transfer> received_along_rail(Gather const& gather, int peer);
/// Pieces of a shard that travel between nodes, where the plan leaves that open: so many that handing on hides behind
/// the rail.
inline constexpr int64_t kRailPieces = 4;
/// `plan` with such a height of communication tiles, if it leaves that open.
Plan with_pieces(Plan plan, int64_t max_m, Nodes const& nodes);
/// What the others would push to this rank, in the order of arrival, read from their buffers, on a ring from the left
/// neighbour's: for a mirror.
std::vector<Transfer> pushes_of_others(Gather const& gather);

}  // namespace flux

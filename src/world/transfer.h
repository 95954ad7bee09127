#pragma once
// What has to be carried from rank to rank, as a value: for threads, copy engines and blocks of a GPU alike.
#include <cstddef>
#include <cstdint>

#include "tile/signal.h"

namespace flux {

/// `rows` rows of `row_bytes` bytes. `to == nullptr`: the data is there already and only the link's time and the word
/// remain.
struct Transfer {
  Word* after = nullptr;  // wait for this word of ours first
  Word goal = 0;          // its value, and that of `set`
  bool clear_after = false;
  Awaited awaited = Awaited::kNothing;  // what `after` stands for, and whose act it is
  int awaited_from = 0;
  int peer = -1;    // where the rows arrive, -1: here
  int64_t row = 0;  // global row, for the timeline and for errors
  std::byte* to = nullptr;
  std::byte const* from = nullptr;
  int64_t rows = 0, row_bytes = 0, to_stride = 0, from_stride = 0;  // strides in bytes
  Word* set = nullptr;
  // Blocks of a GPU only: what lies here, with the destination's strides, is added on the way, once `add_after` says
  // so.
  std::byte const* add = nullptr;
  Word* add_after = nullptr;
};

}  // namespace flux

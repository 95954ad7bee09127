// Whatever the bytes are: parse_safetensors returns tensors that lie inside them, or throws Error{kInvalid}.
#include <cstdint>
#include <cstdlib>

#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) {
  std::span const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    for (auto const& [name, stored] : flux::parse_safetensors(file, "input")) {
      auto const* const begin = stored.bytes.data();
      if (begin < file.data() || begin + stored.bytes.size() > file.data() + size) std::abort();
      if (!stored.readable()) continue;
      flux::Tensor const tensor = stored.tensor();
      if (tensor.rows < 0 || tensor.columns < 0) std::abort();
      if (static_cast<size_t>(tensor.bytes()) != stored.bytes.size()) std::abort();
    }
  } catch (flux::Error const& error) {
    if (error.kind() != flux::ErrorKind::kInvalid) std::abort();
  }
  return 0;
}

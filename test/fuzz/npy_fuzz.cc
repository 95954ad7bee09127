// Whatever the bytes are: parse_npy returns a matrix that lies inside them, or throws Error{kInvalid}.
#include <cstdint>
#include <cstdlib>

#include "io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) {
  std::span const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    flux::NpyHeader const header = flux::parse_npy(file, "input");
    int64_t const bytes = header.rows() * header.columns() * flux::size_of(header.dtype);
    if (header.rows() < 0 || header.columns() < 0 || header.offset + static_cast<size_t>(bytes) != size) std::abort();
  } catch (flux::Error const& error) {
    if (error.kind() != flux::ErrorKind::kInvalid) std::abort();
  }
  return 0;
}

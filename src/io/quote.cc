#include "io/quote.h"

#include <fmt/format.h>

namespace flux {
namespace {

/// The length of the UTF-8 sequence at the start of `text` if it is well-formed and printable, else 0.
size_t printable(std::string_view text) {
  auto const lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  size_t const length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (lead >= 0xf5 || length == 0 || text.size() < length) return 0;
  uint32_t code = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    auto const next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  bool const overlong = length == 3 ? code < 0x800 : length == 4 && code < 0x10000;
  bool const surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code < 0xa0 || code > 0x10ffff ? 0 : length;
}

}  // namespace

std::string quote(std::string_view text) {
  constexpr size_t kMost = 160;
  std::string out = "\"";
  while (!text.empty() && out.size() < kMost) {
    size_t const length = printable(text);
    if (length > 0)
      out += text.substr(0, length);
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out + (text.empty() ? "\"" : "...\"");
}

}  // namespace flux

#include "io/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "io/atomic_file.h"
#include "io/quote.h"
#include "io/shape.h"

namespace flux {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 64;  // as NumPy

/// Reads the header's text, a Python dictionary of the keys descr, fortran_order and shape in any order.
class Dictionary {
 public:
  Dictionary(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;

  void read() {
    bool seen[3] = {};
    expect('{');
    while (!take('}')) {
      std::string const key = string();
      expect(':');
      int const which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which]) fail();
      seen[which] = true;
      if (which == 0) descr = string();
      if (which == 1) fortran_order = boolean();
      if (which == 2) tuple();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    space();
    if (!text_.empty() || !seen[0] || !seen[1] || !seen[2]) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::kInvalid,
                fmt::format("{} has a damaged .npy header; allowed is a dictionary of 'descr' (a plain dtype such as "
                            "'<f4'), 'fortran_order' and 'shape'",
                            quote(name_)));
  }
  void space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  bool take(char c) {
    space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string string() {
    char const end = take('\'') ? '\'' : '"';
    if (end == '"') expect('"');
    size_t const length = text_.find(end);
    if (length == text_.npos || text_.substr(0, length).find('\\') != text_.npos) fail();
    std::string value(text_.substr(0, length));
    text_.remove_prefix(length + 1);
    return value;
  }
  bool boolean() {
    space();
    if (take("True")) return true;
    if (!take("False")) fail();
    return false;
  }
  void tuple() {
    expect('(');
    while (!take(')')) {
      space();
      int64_t size = 0;
      auto const [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0 || shape.size() == kMostDimensions) fail();
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      shape.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_, name_;
};

std::optional<DType> dtype_of(std::string_view descr) {
  if (descr == "<f8") return DType::kF64;
  if (descr == "<f4") return DType::kF32;
  if (descr == "<f2") return DType::kF16;
  if (descr == "<V2" || descr == "|V2") return DType::kBF16;
  return std::nullopt;
}

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "<f8";
    case DType::kF32: return "<f4";
    case DType::kF16: return "<f2";
    case DType::kBF16: return "<V2";
    case DType::kI8: return "|i1";
    case DType::kF8: return "|V1";
  }
  return "";
}

}  // namespace

int64_t NpyHeader::rows() const { return matrix_rows(shape); }
int64_t NpyHeader::columns() const { return matrix_columns(shape); }

NpyHeader parse_npy(std::span<std::byte const> file, std::string_view name) {
  auto fail = [&](auto const& what) { throw Error(ErrorKind::kInvalid, fmt::format("{} {}", quote(name), what)); };
  std::string_view const text(reinterpret_cast<char const*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) fail("is no .npy file; write it with numpy.save");
  if (file.size() < 10) fail("is a truncated .npy file");
  int const version = std::to_integer<int>(file[6]);
  if (version < 1 || version > 3) fail(fmt::format("is of .npy format {}; allowed are 1, 2 and 3", version));
  size_t const width = version == 1 ? 2 : 4, start = kMagic.size() + 2 + width;  // of the header's text
  if (file.size() < start) fail("is a truncated .npy file");
  size_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= std::to_integer<size_t>(file[8 + i]) << (8 * i);
  if (length > file.size() - start)
    fail(fmt::format("promises a header of {} bytes and holds {}; the file is truncated or damaged", length,
                     file.size() - start));

  Dictionary dictionary(text.substr(start, length), name);
  dictionary.read();
  auto const dtype = dtype_of(dictionary.descr);
  if (!dtype)
    fail(fmt::format("has elements of type {}; allowed are <f8, <f4, <f2, and for bf16 <V2", quote(dictionary.descr)));
  if (dictionary.fortran_order && dictionary.shape.size() > 1)
    fail("is in Fortran order; save numpy.ascontiguousarray(x)");

  NpyHeader header{*dtype, std::move(dictionary.shape), start + length};
  auto const elements = checked_product(header.shape);
  size_t const held = file.size() - header.offset;
  int64_t promised = 0;
  if (!elements || __builtin_mul_overflow(*elements, size_of(header.dtype), &promised) ||
      static_cast<size_t>(promised) != held)
    fail(fmt::format("promises {} {} elements and holds {} bytes of them; the file is truncated or damaged",
                     shape_text(header.shape), flux::name(header.dtype), held));
  return header;
}

NpyFile::NpyFile(std::filesystem::path const& path) : file_(path), header_(parse_npy(file_.bytes(), path.native())) {}

Tensor NpyFile::tensor() const {
  auto* const data = const_cast<std::byte*>(file_.bytes().data() + header_.offset);
  return matrix(data, header_.dtype, header_.rows(), header_.columns());
}

void write_npy(std::filesystem::path const& path, Tensor const& matrix) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 descr_of(matrix.dtype), matrix.rows, matrix.columns);
  constexpr size_t kAlignment = 64, kPrefix = 10;  // the data starts at a multiple of 64 bytes
  text.resize((kPrefix + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kPrefix - 1, ' ');
  text += '\n';
  std::string prefix(kMagic);
  prefix += {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};

  AtomicFile file(path);
  file.write(prefix);
  file.write(text);
  file.write(matrix);
  file.commit();
}

}  // namespace flux

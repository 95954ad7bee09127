#include "io/safetensors_header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "flux/error.h"
#include "io/quote.h"

namespace flux {
namespace {

using nlohmann::json;

constexpr size_t kMostDimensions = 64;

/// Follows { "name": { "dtype": text, "shape": [...], "data_offsets": [...] }, "__metadata__": { ... } }: the whole is
/// at depth 1, an entry at 2, a list at 3.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  HeaderReader(std::string_view file, std::function<void(HeaderEntry const&)> const& take) : file_(file), take_(take) {}

  bool start_object(std::size_t) override {
    if (++depth_ > 2) fail("is nested more deeply than the format");
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1 && !metadata()) take_(entry_);
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ != 3) fail("has a list where the format has none");
    if (!metadata()) list_ = field_ == "shape" ? &entry_.shape : field_ == "data_offsets" ? &entry_.offsets : nullptr;
    if (list_) fresh(*list_).emplace();
    return true;
  }
  bool end_array() override {
    --depth_;
    list_ = nullptr;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1)
      entry_ = {std::move(text), {}, {}, {}};
    else
      field_ = std::move(text);
    return true;
  }
  bool string(std::string& text) override {
    scalar();
    if (depth_ == 2 && !metadata() && field_ == "dtype") fresh(entry_.dtype) = std::move(text);
    return true;
  }
  bool number_unsigned(uint64_t number) override {
    if (!list_) return scalar();
    if ((*list_)->size() == kMostDimensions || number > INT64_MAX) return number_refused();
    (*list_)->push_back(static_cast<int64_t>(number));
    return true;
  }
  bool number_integer(int64_t) override { return scalar(); }
  bool number_float(double, std::string const&) override { return scalar(); }
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool binary(json::binary_t&) override { return scalar(); }
  bool parse_error(std::size_t byte, std::string const&, nlohmann::detail::exception const&) override {
    fail(fmt::format("is no JSON from byte {} on", byte));
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw Error(ErrorKind::kInvalid,
                fmt::format("{} has a header that {}; the file is damaged or no safetensors file", quote(file_), what));
  }
  bool number_refused() const {
    fail(fmt::format("gives tensor {} a {} that is no list of at most {} non-negative integers", quote(entry_.name),
                     quote(field_), kMostDimensions));
  }
  bool metadata() const { return entry_.name == "__metadata__"; }
  /// A value that is no list of sizes.
  bool scalar() const {
    if (list_) number_refused();
    if (depth_ < 2) fail("is no table of tensors");
    return true;
  }
  template <class T>
  T& fresh(T& field) const {
    if (field) fail(fmt::format("says {} of tensor {} twice", quote(field_), quote(entry_.name)));
    return field;
  }

  std::string_view file_;
  std::function<void(HeaderEntry const&)> const& take_;
  int depth_ = 0;
  std::string field_;
  HeaderEntry entry_;
  std::optional<std::vector<int64_t>>* list_ = nullptr;
};

}  // namespace

void read_header(std::string_view text, std::string_view file, std::function<void(HeaderEntry const&)> const& take) {
  HeaderReader reader(file, take);
  json::sax_parse(text, &reader);
}

}  // namespace flux

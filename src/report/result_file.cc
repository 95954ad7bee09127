#include "report/result_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "flux/error.h"
#include "io/atomic_file.h"
#include "io/json_file.h"
#include "io/mapped_file.h"
#include "io/quote.h"
#include "report/result_fields.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(std::string_view name, std::string const& what) {
  throw Error(ErrorKind::kInvalid, fmt::format("{} {}", quote(name), what));
}

Json to_value(std::string const& text) { return text; }
Json to_value(bool value) { return value; }
Json to_value(int64_t value) { return value; }
Json to_value(double value) { return value; }
/// A command line may hold any bytes; JSON may not.
std::string dump(Json const& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }
template <class T>
Json to_value(std::optional<T> const& value) {
  return value ? to_value(*value) : Json();
}

bool from_value(nlohmann::json const& value, std::string& to) {
  return value.is_string() && (to = value.get<std::string>(), true);
}
bool from_value(nlohmann::json const& value, bool& to) { return value.is_boolean() && (to = value.get<bool>(), true); }
bool from_value(nlohmann::json const& value, int64_t& to) {
  bool const fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  return fits && (to = value.get<int64_t>(), true);
}
bool from_value(nlohmann::json const& value, double& to) {
  return value.is_number() && (to = value.get<double>(), true);
}

std::string_view type_of(std::string const&) { return "text"; }
std::string_view type_of(bool) { return "true or false"; }
std::string_view type_of(int64_t) { return "a whole number"; }
std::string_view type_of(double) { return "a number"; }

/// Takes fields out of an object and says at the end which were left. `where` is "row 3", "machine" or "the file".
class FieldReader {
 public:
  FieldReader(nlohmann::json const& object, std::string_view name, std::string where)
      : object_(object), name_(name), where_(std::move(where)) {
    if (!object.is_object()) fail(name_, fmt::format("has no object where {} is expected", where_));
  }

  template <class T>
  void operator()(char const* key, T& to) {
    seen_.insert(key);
    if (!object_.contains(key)) fail(name_, fmt::format("has no {} in {}", quote(key), where_));
    if (!from_value(object_[key], to)) refuse(key, type_of(T()), "");
  }
  template <class T>
  void operator()(char const* key, std::optional<T>& to) {
    seen_.insert(key);
    if (!object_.contains(key) || object_[key].is_null()) return;
    if (!from_value(object_[key], to.emplace())) refuse(key, type_of(T()), " or null");
  }
  nlohmann::json const& child(char const* key) {
    seen_.insert(key);
    if (!object_.contains(key)) fail(name_, fmt::format("has no {} in {}", quote(key), where_));
    return object_[key];
  }
  void end() const {
    for (auto const& [key, value] : object_.items())
      if (!seen_.contains(key)) fail(name_, fmt::format("has an unknown field {} in {}", quote(key), where_));
  }

 private:
  [[noreturn]] void refuse(char const* key, std::string_view type, std::string_view more) const {
    fail(name_, fmt::format("has {} for {} in {}; allowed is {}{}", quote(object_[key].dump()), quote(key), where_,
                            type, more));
  }
  nlohmann::json const& object_;
  std::string_view name_;
  std::string where_;
  std::set<std::string_view> seen_;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Whether `text` is `form` with any digit for each 0.
bool has_form(std::string_view text, std::string_view form) {
  return std::ranges::equal(text, form, [](char c, char f) { return f == '0' ? is_digit(c) : c == f; });
}

/// What a file must be before it is written, and after it was read.
void check(ResultFile const& file, std::string_view name) {
  if (!has_form(file.date, "0000-00-00T00:00:00Z"))
    fail(name, fmt::format("has date {}; allowed is UTC like 2026-12-01T10:00:00Z", quote(file.date)));
  auto part_of_name = [](char c) { return is_word(c) || c == '-'; };
  if (file.suite.empty() || !std::ranges::all_of(file.suite, part_of_name))
    fail(name, fmt::format("has suite {}; allowed are letters, digits, - and _", quote(file.suite)));
  if (file.rows.empty()) fail(name, "has no rows; a result file needs at least one");
  for (size_t i = 0; i < file.rows.size(); ++i) {
    auto finite = [&](char const* key, double value) {
      if (!std::isfinite(value))
        fail(name, fmt::format("has {} for {} in row {}; allowed is a number", value, quote(key), i + 1));
    };
    each_row_field(file.rows[i], [&](char const* key, auto const& field) {
      using Field = std::decay_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, double>) finite(key, field);
      if constexpr (std::is_same_v<Field, std::optional<double>>) finite(key, field.value_or(0));
    });
    if (file.rows[i].total_us <= 0 || file.rows[i].samples <= 0)
      fail(name, fmt::format("has {} us of {} samples in row {}; allowed are more than 0", file.rows[i].total_us,
                             file.rows[i].samples, i + 1));
  }
}

/// "h200x2": letters, digits and _, for a file name.
std::string machine_word(MachineFacts const& machine) {
  std::string word;
  for (char const c : machine.gpu.value_or("cpu"))
    word += is_word(c) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  if (word.starts_with("nvidia_")) word.erase(0, 7);
  return fmt::format("{}x{}", word, machine.gpu ? machine.gpus : machine.cores.value_or(1));
}

}  // namespace

std::string utc_now() {
  auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::string to_json(ResultFile const& file) {
  check(file, "the result");
  auto put_into = [](Json& object) {
    return [&object](char const* key, auto const& value) { object[key] = to_value(value); };
  };
  Json out = {{"schema", ResultFile::kSchema}};
  each_file_field(file, put_into(out));
  each_machine_field(file.machine, put_into(out["machine"]));
  for (auto const& [key, sensors] : {std::pair{"before", &file.before}, {"after", &file.after}}) {
    if (!*sensors) continue;
    Json known = Json::object();
    each_sensor_field(**sensors, [&](char const* field, auto const& value) {
      if (value) known[field] = *value;
    });
    out[key] = known;
  }
  // One row a line: files are read by people, and compared.
  out["rows"] = nullptr;
  std::string const text = dump(out, 1);
  std::string rows;
  for (ResultRow const& row : file.rows) {
    Json line;
    each_row_field(row, put_into(line));
    rows += (rows.empty() ? "\n  " : ",\n  ") + dump(line, -1);
  }
  return text.substr(0, text.rfind("null")) + "[" + rows + "\n ]\n}\n";
}

ResultFile parse_result(std::string_view text, std::string_view name) {
  auto const json = parse_json(text, name);
  if (!json.is_object() || !json.contains("schema")) fail(name, "is no result file: it has no \"schema\"");
  if (json["schema"] != ResultFile::kSchema)
    fail(name,
         fmt::format("is of schema {}; this build reads schema {}", quote(json["schema"].dump()), ResultFile::kSchema));
  ResultFile file;
  FieldReader top(json, name, "the file");
  top.child("schema");
  each_file_field(file, top);
  FieldReader machine(top.child("machine"), name, "machine");
  each_machine_field(file.machine, machine);
  machine.end();
  for (auto const& [key, sensors] : {std::pair{"before", &file.before}, {"after", &file.after}}) {
    if (!json.contains(key)) continue;
    FieldReader fields(top.child(key), name, key);
    each_sensor_field(sensors->emplace(), fields);
    fields.end();
  }
  auto const& rows = top.child("rows");
  top.end();
  if (!rows.is_array()) fail(name, "has no list of rows");
  for (auto const& row : rows) {
    FieldReader fields(row, name, fmt::format("row {}", file.rows.size() + 1));
    each_row_field(file.rows.emplace_back(), fields);
    fields.end();
  }
  check(file, name);
  return file;
}

ResultFile read_result(std::filesystem::path const& path) {
  MappedFile const file(path);
  auto const bytes = file.bytes();
  return parse_result({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path.native());
}

std::filesystem::path free_result_path(std::filesystem::path const& folder, ResultFile const& file) {
  std::string const stem = fmt::format("{}-{}-{}", file.date.substr(0, 10), machine_word(file.machine), file.suite);
  std::filesystem::path path = folder / (stem + ".json");
  std::error_code ignored;
  for (int run = 2; std::filesystem::exists(path, ignored); ++run) path = folder / fmt::format("{}-{}.json", stem, run);
  return path;
}

std::filesystem::path write_result(std::filesystem::path const& folder, ResultFile const& file) {
  std::string const text = to_json(file);
  std::filesystem::path const path = free_result_path(folder, file);
  write_file(path, text);
  return path;
}

}  // namespace flux

#include "plan/machine.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "flux/error.h"
#include "io/json_file.h"
#include "io/quote.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, LinkKind>, 4> kLinks = {{{"nvlink", LinkKind::kNvlink},
                                                                          {"pcie", LinkKind::kPcie},
                                                                          {"host", LinkKind::kHost},
                                                                          {"declared", LinkKind::kDeclared}}};
constexpr std::array<std::pair<std::string_view, EngineKind>, 3> kEngines = {
    {{"sm90", EngineKind::kSm90}, {"sm80", EngineKind::kSm80}, {"host", EngineKind::kHost}}};

template <class Words, class T>
std::string_view word_of(Words const& words, T value) {
  for (auto const& [word, of] : words)
    if (of == value) return word;
  return "?";
}

// What a number may be. Rates that are nothing would make times that are infinite.
struct Range {
  double least, most;
};
constexpr Range kRate{1e-3, 1e6}, kMicroseconds{0, 1e6}, kPart{0.05, 1}, kSpeed{0.2, 5}, kMegahertz{1, 1e5};

// The one list that writing and reading go by.
template <class L, class F>
void each_link_field(L& link, F&& f) {
  f("kind", link.kind);
  f("push_gbps", link.push_gbps, kRate), f("pull_gbps", link.pull_gbps, kRate);
  f("store_gbps", link.store_gbps, kRate), f("load_gbps", link.load_gbps, kRate);
  f("block_gbps", link.block_gbps, kRate);
  f("start_us", link.start_us, kMicroseconds), f("copy_us", link.copy_us, kMicroseconds);
  f("word_us", link.word_us, kMicroseconds), f("flag_us", link.flag_us, kMicroseconds);
  f("collective_gbps", link.collective_gbps, kRate), f("collective_us", link.collective_us, kMicroseconds);
  f("beside", link.beside, kPart);
}
template <class M, class F>
void each_field(M& machine, F&& f) {
  f("name", machine.name), f("source", machine.source), f("engine", machine.engine);
  f("processors", machine.processors, Range{1, 4096}), f("products", machine.products, Range{1, 1e6});
  f("clock_mhz", machine.clock_mhz, kMegahertz), f("sustained_mhz", machine.sustained_mhz, kMegahertz);
  f("library_speed", machine.library_speed, kSpeed), f("memory_gbps", machine.memory_gbps, kRate);
  f.optional("l2_bytes", machine.l2_bytes, Range{0, 1e12});
  f.optional("shared_bytes", machine.shared_bytes, Range{48 << 10, 1 << 20});
  f.optional("fp8", machine.fp8);
  f("gemm_us", machine.gemm_us, kMicroseconds), f("call_us", machine.call_us, kMicroseconds);
  f("beside", machine.beside, kPart), f("mirror", machine.mirror);
  f.optional("node_ranks", machine.node_ranks, Range{1, 16});
  f.optional("nic_gbps", machine.nic_gbps, Range{0, 1e6}), f.optional("nic_us", machine.nic_us, kMicroseconds);
}

struct Writer {
  Json object = Json::object();
  void operator()(char const* key, std::string const& text) { object[key] = text; }
  void operator()(char const* key, LinkKind kind) { object[key] = name(kind); }
  void operator()(char const* key, EngineKind kind) { object[key] = name(kind); }
  void operator()(char const* key, bool yes) { object[key] = yes; }
  template <class Number>
  void operator()(char const* key, Number value, Range) {
    object[key] = value;
  }
  template <class... Value>
  void optional(char const* key, Value... value) {
    (*this)(key, value...);
  }
};

class Reader {
 public:
  Reader(nlohmann::json const& object, std::string_view file, std::string_view where)
      : object_(object), file_(file), where_(where) {
    if (!object.is_object()) fail(fmt::format("has no object where {} is expected", where));
  }

  void operator()(char const* key, std::string& text) {
    auto const& value = find(key);
    if (!value.is_string()) refuse(key, "a text");
    text = value.template get<std::string>();
  }
  void operator()(char const* key, LinkKind& kind) { one_of(key, kLinks, kind); }
  void operator()(char const* key, EngineKind& kind) { one_of(key, kEngines, kind); }
  void operator()(char const* key, bool& yes) {
    auto const& value = find(key);
    if (!value.is_boolean()) refuse(key, "true or false");
    yes = value.template get<bool>();
  }
  template <class Number>
  void operator()(char const* key, Number& number, Range range) {
    auto const& value = find(key);
    double const found = value.is_number() ? value.template get<double>() : NAN;
    bool const whole = !std::is_integral_v<Number> || found == std::floor(found);
    if (!(found >= range.least && found <= range.most) || !whole)
      refuse(key, fmt::format("{} from {} to {}", std::is_integral_v<Number> ? "a whole number" : "a number",
                              range.least, range.most));
    number = static_cast<Number>(found);
  }
  /// Files from before there was such a field keep the usual value.
  template <class T, class... Allowed>
  void optional(char const* key, T& value, Allowed... allowed) {
    if (object_.contains(key)) (*this)(key, value, allowed...);
  }
  nlohmann::json const& find(char const* key) {
    seen_.insert(key);
    if (!object_.contains(key)) fail(fmt::format("has no {} in {}", quote(key), where_));
    return object_[key];
  }
  void end() const {
    for (auto const& [key, value] : object_.items())
      if (!seen_.contains(key)) fail(fmt::format("has an unknown field {} in {}", quote(key), where_));
  }
  [[noreturn]] void fail(std::string const& what) const {
    throw Error(ErrorKind::kInvalid, fmt::format("machine file {} {}", quote(file_), what));
  }

 private:
  template <class Words, class T>
  void one_of(char const* key, Words const& words, T& to) {
    auto const& value = find(key);
    std::string allowed;
    for (auto const& [word, of] : words) {
      if (value.is_string() && value == word) return void(to = of);
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", word);
    }
    refuse(key, allowed);
  }
  [[noreturn]] void refuse(char const* key, std::string_view allowed) const {
    auto const text = object_[key].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fail(fmt::format("has {} for {} in {}; allowed is {}", quote(text), quote(key), where_, allowed));
  }

  nlohmann::json const& object_;
  std::string_view file_, where_;
  std::set<std::string_view> seen_;
};

}  // namespace

std::string_view name(LinkKind kind) { return word_of(kLinks, kind); }
std::string_view name(EngineKind kind) { return word_of(kEngines, kind); }

std::string to_json(Machine const& machine) {
  Writer all, link;
  all.object["schema"] = Machine::kSchema;
  each_field(machine, all);
  each_link_field(machine.link, link);
  all.object["link"] = link.object;
  return all.object.dump(2) + "\n";
}

Machine parse_machine(std::string_view text, std::string_view name) {
  auto const json = parse_json(text, name);
  Machine machine;
  Reader all(json, name, "the machine");
  int schema = 0;
  all("schema", schema, Range{0, 1e6});
  if (schema != Machine::kSchema)
    all.fail(fmt::format("is of schema {}; this build reads schema {}", schema, Machine::kSchema));
  each_field(machine, all);
  Reader link(all.find("link"), name, "the link");
  all.end();
  each_link_field(machine.link, link);
  link.end();
  if (machine.sustained_mhz > machine.clock_mhz)
    all.fail(fmt::format("has sustained_mhz {} above clock_mhz {}; under power it is the same or less",
                         machine.sustained_mhz, machine.clock_mhz));
  return machine;
}

Machine find_machine(std::string const& name_or_file) {
  std::string known;
  for (Machine const& machine : named_machines()) {
    if (machine.name == name_or_file) return machine;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", machine.name);
  }
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_file, ignored))
    throw Error(ErrorKind::kInvalid,
                fmt::format("machine {} is neither a file nor one of {}", quote(name_or_file), known));
  auto const json = read_json(name_or_file);
  return parse_machine(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), name_or_file);
}

std::string key(Machine const& m) {
  return fmt::format("{} {} processors {}", name(m.engine), m.processors, name(m.link.kind));
}

}  // namespace flux

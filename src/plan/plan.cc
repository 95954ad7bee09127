// A plan as one line, and back.
#include "flux/plan.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <vector>

#include "flux/error.h"

namespace flux {
namespace {

// One word of the line: how it prints and how it is read. Reading returns false where the value is not allowed.
struct Knob {
  std::string_view key, allowed;
  std::function<std::string(Plan const&)> print;
  std::function<bool(Plan&, std::string_view)> read;
};

bool read_number(std::string_view text, int64_t least, int64_t most, int64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
}

template <class T>
Knob number(std::string_view key, std::string_view allowed, int64_t least, int64_t most, T Plan::*field) {
  return {key, allowed, [=](Plan const& p) { return fmt::format("{}", p.*field); },
          [=](Plan& p, std::string_view text) {
            int64_t value = 0;
            if (!read_number(text, least, most, value)) return false;
            p.*field = static_cast<T>(value);
            return true;
          }};
}

template <class T>
Knob choice(std::string_view key, std::string_view allowed, T Plan::*field,
            std::vector<std::pair<std::string_view, T>> words) {
  return {key, allowed,
          [=](Plan const& p) {
            for (auto const& [word, value] : words)
              if (value == p.*field) return std::string(word);
            return std::string("?");
          },
          [=](Plan& p, std::string_view text) {
            for (auto const& [word, value] : words)
              if (word == text) {
                p.*field = value;
                return true;
              }
            return false;
          }};
}

std::vector<Knob> const& knobs() {
  static std::vector<Knob> const all = {
      choice<bool>("fused", "yes, no", &Plan::fused, {{"yes", true}, {"no", false}}),
      choice<bool>("order", "follow, naive", &Plan::in_order, {{"follow", true}, {"naive", false}}),
      {"tile", "auto, or ROWSxCOLUMNS, each 1 to 65536",
       [](Plan const& p) {
         return p.block_m == 0 && p.block_n == 0 ? std::string("auto") : fmt::format("{}x{}", p.block_m, p.block_n);
       },
       [](Plan& p, std::string_view text) {
         if (text == "auto") return p.block_m = p.block_n = 0, true;
         size_t const x = text.find('x');
         int64_t m = 0, n = 0;
         if (x == text.npos || !read_number(text.substr(0, x), 1, 65536, m) ||
             !read_number(text.substr(x + 1), 1, 65536, n))
           return false;
         p.block_m = static_cast<int>(m), p.block_n = static_cast<int>(n);
         return true;
       }},
      {"band", "auto, or 1 to 1024 tile rows",
       [](Plan const& p) { return p.band == 0 ? std::string("auto") : fmt::format("{}", p.band); },
       [](Plan& p, std::string_view text) {
         int64_t band = 0;
         if (text != "auto" && !read_number(text, 1, 1024, band)) return false;
         p.band = static_cast<int>(band);
         return true;
       }},
      number("workers", "1 to 256 threads a rank", 1, 256, &Plan::workers),
      choice<Transport>("transport", "push, pull, remote", &Plan::transport,
                        {{"push", Transport::kPush}, {"pull", Transport::kPull}, {"remote", Transport::kRemote}}),
      choice<Path>("path", "direct, ring", &Plan::path, {{"direct", Path::kDirect}, {"ring", Path::kRing}}),
      {"comm_rows", "auto, shard, or a number of rows from 1",
       [](Plan const& p) {
         return p.comm_rows == 0             ? std::string("auto")
                : p.comm_rows == kWholeShard ? std::string("shard")
                                             : fmt::format("{}", p.comm_rows);
       },
       [](Plan& p, std::string_view text) {
         if (text == "auto") return p.comm_rows = 0, true;
         if (text == "shard") return p.comm_rows = kWholeShard, true;
         return read_number(text, 1, int64_t{1} << 40, p.comm_rows);
       }},
      {"copies", "auto, engine, or 1 to 32 blocks",
       [](Plan const& p) {
         return p.copy_blocks == kChosenCopies ? std::string("auto")
                : p.copy_blocks == 0           ? std::string("engine")
                                               : fmt::format("{}", p.copy_blocks);
       },
       [](Plan& p, std::string_view text) {
         if (text == "auto") return p.copy_blocks = kChosenCopies, true;
         if (text == "engine") return p.copy_blocks = 0, true;
         int64_t blocks = 0;
         if (!read_number(text, 1, 32, blocks)) return false;
         p.copy_blocks = static_cast<int>(blocks);
         return true;
       }},
      number("k_slices", "1 to 64", 1, 64, &Plan::k_slices),
      choice<RouteKind>("route", "auto, packets, push, stage, sum, ring", &Plan::route,
                        {{"auto", RouteKind::kAuto},
                         {"packets", RouteKind::kPackets},
                         {"push", RouteKind::kPush},
                         {"stage", RouteKind::kStage},
                         {"sum", RouteKind::kSum},
                         {"ring", RouteKind::kRing}}),
      choice<StoreKind>("store", "tensor, bulk, vector", &Plan::store,
                        {{"tensor", StoreKind::kTensor}, {"bulk", StoreKind::kBulk}, {"vector", StoreKind::kVector}}),
      choice<bool>("slots", "dtype, fp32", &Plan::wide_slots, {{"dtype", false}, {"fp32", true}}),
      choice<Shots>("shots", "auto, one, two", &Plan::shots,
                    {{"auto", Shots::kAuto}, {"one", Shots::kOneShot}, {"two", Shots::kTwoShot}}),
      number("buffers", "1 or 2", 1, 2, &Plan::buffers),
      number("spare", "0 to 64 multiprocessors", 0, 64, &Plan::spare),
      number("lane", "0 to 7", 0, 7, &Plan::lane),
  };
  return all;
}

}  // namespace

std::string to_string(Plan const& plan) {
  std::string line;
  for (auto const& knob : knobs()) line += fmt::format("{}{}={}", line.empty() ? "" : " ", knob.key, knob.print(plan));
  return line;
}

Plan parse_plan(std::string_view line, Plan const& base) {
  Plan plan = base;
  size_t at = 0;
  while ((at = line.find_first_not_of(' ', at)) != line.npos) {
    size_t const end = std::min(line.find(' ', at), line.size());
    std::string_view const word = line.substr(at, end - at);
    at = end;
    size_t const equals = word.find('=');
    std::string_view const key = word.substr(0, equals);
    Knob const* found = nullptr;
    std::string keys;
    for (auto const& knob : knobs()) {
      if (knob.key == key) found = &knob;
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ", knob.key);
    }
    if (!found || equals == word.npos)
      throw Error(ErrorKind::kInvalid,
                  fmt::format("plan word '{}' is unknown; a plan is made of KEY=VALUE with the keys {}", word, keys));
    if (!found->read(plan, word.substr(equals + 1)))
      throw Error(ErrorKind::kInvalid, fmt::format("plan word '{}' has a value that is not allowed; {} takes {}", word,
                                                   key, found->allowed));
  }
  return plan;
}

}  // namespace flux

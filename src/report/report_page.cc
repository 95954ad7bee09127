// The data of the page, as JSON that stands inside its HTML.
#include <nlohmann/json.hpp>

#include "flux/version.h"
#include "report/page.h"
#include "report/report.h"
#include "report/result_fields.h"
#include "trace/lanes.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

Json value(auto const& field) { return field; }
template <class T>
Json value(std::optional<T> const& field) {
  return field ? Json(*field) : Json();
}

Json facts(ResultFile const& file, std::string const& name) {
  Json out = {{"name", name}};
  each_file_field(file, [&](char const* key, auto const& field) { out[key] = value(field); });
  each_machine_field(file.machine, [&](char const* key, auto const& field) { out["machine"][key] = value(field); });
  return out;
}

/// The names of a row's fields once, then each row as a list: a third of the bytes.
Json field_names() {
  Json out = {"file"};
  ResultRow const row;
  each_row_field(row, [&](char const* key, auto const&) { out.push_back(key); });
  out.push_back("tflops"), out.push_back("over_floor");
  return out;
}

Json cells(ResultRow const& row, size_t file) {
  Json out = {file};
  each_row_field(row, [&](char const*, auto const& field) { out.push_back(value(field)); });
  out.push_back(value(tflops(row))), out.push_back(value(over_floor(row)));
  return out;
}

/// Lanes with spans [kind, begin, duration, row, rows, n, peer] in nanoseconds from the first span.
Json trace(Report::Trace const& source) {
  Lanes const lanes = lanes_of(source.timeline);
  Json out = {{"name", source.name}, {"title", source.timeline.title}, {"duration_ns", lanes.duration_ns()}};
  out["facts"] = out["lanes"] = Json::array();
  for (auto const& [what, text] : source.timeline.facts) out["facts"].push_back(Json::array({what, text}));
  for (Lane const& lane : lanes.lanes) {
    Json spans = Json::array();
    for (Span const* s : lane.spans)
      spans.push_back(Json::array({static_cast<int>(s->kind), s->begin_ns - lanes.begin_ns, s->end_ns - s->begin_ns,
                                   s->row, s->rows, s->n, s->peer}));
    out["lanes"].push_back({{"rank", lane.rank}, {"name", lane.name}, {"spans", std::move(spans)}});
  }
  return out;
}

/// Inside a script element no text may look like a tag; in JSON every '<' may be written \u003c.
std::string inside_script(Json const& json) {
  std::string out;
  for (char const c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string to_html(Report const& report) {
  Json data = {{"made_by", "flux " + std::string(version()) + " (" + std::string(commit()) + ")"},
               {"left_out", report.left_out},
               {"notes", report.notes},
               {"fields", field_names()}};
  data["files"] = data["rows"] = data["timelines"] = Json::array();
  for (size_t i = 0; i < report.files.size(); ++i) {
    auto const& [name, file] = report.files[i];
    data["files"].push_back(facts(file, name));
    for (ResultRow const& row : file.rows) data["rows"].push_back(cells(row, i));
  }
  for (auto const& source : report.traces) data["timelines"].push_back(trace(source));
  std::string html = page();
  return html.replace(html.find(kPageDataMark), kPageDataMark.size(), inside_script(data));
}

}  // namespace flux

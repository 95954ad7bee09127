#include "trace/svg_style.h"

#include <algorithm>

namespace flux {

std::string style() {
  return R"svg(<defs>
<pattern id="waiting" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="5" height="5" fill="#eceae4"/><rect width="1.6" height="5" fill="#b3aea1"/></pattern>
<pattern id="summing" width="4" height="4" patternUnits="userSpaceOnUse">
<rect width="4" height="4" fill="#a34b8b"/><rect width="1.4" height="4" fill="#f2cfe5"/></pattern>
</defs>
<style>
text{font-family:Inter,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;fill:#1f2933}
.paper{fill:#fff}.idle{fill:#f6f6f4}
.title{font-size:21px;font-weight:600}.summary{font-size:14px}.fact{font-size:12px;fill:#5f6b76}
.legend{font-size:13px}.rank{font-size:13px;font-weight:600}
.lane{font-size:11px;fill:#5f6b76;text-anchor:end}.share{font-size:11px;fill:#5f6b76}
.tick{font-size:11px;fill:#5f6b76;text-anchor:middle}.grid{stroke:#d5d8db;stroke-width:1}
.wait{fill:url(#waiting)}.maths{fill:#15548f}.store{fill:#35b597}.copy{fill:#f4b73f}.sum{fill:url(#summing)}
.step{fill:none;stroke:#1f2933;stroke-width:.8}
</style>
)svg";
}

std::string_view meaning(SpanKind kind) {
  switch (kind) {
    case SpanKind::kWait: return "waits for rows";
    case SpanKind::kMaths: return "multiplies a tile";
    case SpanKind::kStore: return "stores a tile";
    case SpanKind::kCopy: return "copies rows";
    case SpanKind::kSum: return "adds partial sums";
    case SpanKind::kStep: return "whole operation";
  }
  return "?";
}

std::string escape(std::string_view text) {
  std::string out;
  for (char const c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no other control bytes
    }
  }
  return out;
}

std::vector<std::string> wrap(std::string_view text, size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t length = text.size();
    if (length > most) {
      length = text.rfind(' ', most);
      if (length == text.npos || length == 0) length = most;
      while (length < text.size() && (text[length] & 0xc0) == 0x80) ++length;  // never inside a character
    }
    lines.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  return lines;
}

}  // namespace flux

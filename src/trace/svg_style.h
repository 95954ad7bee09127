#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trace/timeline.h"

namespace flux {

/// Colours, patterns and fonts of a picture, as its <defs> and <style>. The kinds differ in hue for eyes of every kind
/// of colour vision, in lightness, and by a pattern where lightness is close.
std::string style();

std::string_view meaning(SpanKind kind);  ///< for the legend: "waits for rows", ...

std::string escape(std::string_view text);  ///< for XML

/// Lines of at most `most` characters, broken between words.
std::vector<std::string> wrap(std::string_view text, size_t most);

}  // namespace flux

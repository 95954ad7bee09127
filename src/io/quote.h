#pragma once
#include <string>
#include <string_view>

namespace flux {

/// `text` in double quotes for an error message: control bytes escaped, cut after 160 bytes. Names and paths come from
/// files that anybody may have written; a message must stay one readable line.
std::string quote(std::string_view text);

}  // namespace flux

#pragma once
#include <string>
#include <string_view>

namespace flux {

/// The page without its data, as cmake/page.cmake made it from the files in src/report/page.
std::string page();

/// Stands in the page where its data goes.
inline constexpr std::string_view kPageDataMark = "/*DATA*/";

}  // namespace flux

#include "io/file_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "flux/error.h"
#include "io/quote.h"

namespace flux {

void throw_file_error(std::filesystem::path const& path, std::string_view action, int error) {
  std::string const said = std::generic_category().message(error);
  std::string_view remedy;
  switch (error) {
    case ENOENT: remedy = "; check the path and its folder"; break;
    case ENOTDIR: remedy = "; a part of the path is a file, not a folder"; break;
    case EISDIR: remedy = "; give the path of a file"; break;
    case EACCES:
    case EPERM:
    case EROFS: remedy = "; give a path that you have the right to use"; break;
    case ENAMETOOLONG:
    case ELOOP: remedy = "; give another path"; break;
    default: throw Error(ErrorKind::kDevice, fmt::format("cannot {} {}: {}", action, quote(path.native()), said));
  }
  throw Error(ErrorKind::kInvalid, fmt::format("cannot {} {}: {}{}", action, quote(path.native()), said, remedy));
}

}  // namespace flux

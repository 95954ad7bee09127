#!/usr/bin/env bash
# format.sh -i: formats our C++ and CUDA files. format.sh --check: fails where one is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
arguments=(-i)
[ "${1:-}" = -i ] || arguments=(--dry-run -Werror)
git ls-files --cached --others --exclude-standard -z -- '*.h' '*.cc' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r clang-format "${arguments[@]}"

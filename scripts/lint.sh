#!/usr/bin/env bash
# lint.sh [file.cc ...]: clang-format over everything, clang-tidy over the given host files or all that the release
# build compiles.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/format.sh --check
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files -- 'src/*.cc' 'cli/*.cc' 'examples/*.cc' 'test/*_test.cc')
compiled=()
for file in "${files[@]}"; do
  grep -q "\"$PWD/$file\"" build/release/compile_commands.json && compiled+=("$file")
done
echo "lint: clang-tidy over ${#compiled[@]} files"
printf '%s\0' "${compiled[@]}" | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy -p build/release --quiet \
  --extra-arg=-Wno-unknown-warning-option

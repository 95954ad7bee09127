#!/usr/bin/env bash
# test.sh: sets up, builds and tests everything that this machine can build. With FLUX_REQUIRE_CUDA=1 a machine without
# nvcc is a failure, not a reason to test less.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/cuda/bin
jobs=${JOBS:-$(nproc)}

cuda=AUTO
if [ "${FLUX_REQUIRE_CUDA:-0}" = 1 ]; then
  command -v nvcc >/dev/null || { echo "test: CUDA is required, and nvcc is not in PATH"; exit 1; }
  cuda=ON
fi
scripts/setup.sh test
command -v ninja >/dev/null && export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}

# Runs a step, quiet unless it fails.
step() {
  local start=$SECONDS log
  log=$(mktemp)
  echo "test: $*"
  "$@" >"$log" 2>&1 || { cat "$log"; rm -f "$log"; exit 1; }
  rm -f "$log"
  echo "test:   done in $((SECONDS - start)) s"
}

status=0
for preset in release asan; do
  flags=(-DFLUX_TESTS=ON)
  [ $preset = release ] && flags+=(-DFLUX_CUDA=$cuda -DFLUX_CHAOS=ON -DFLUX_PACKAGE=ON "-DPython_EXECUTABLE=$PWD/.venv/bin/python")
  step cmake --preset $preset "${flags[@]}"
  step cmake --build build/$preset -j "$jobs"
  rm -rf build/$preset/results
  (cd build/$preset && ctest -j "$jobs" --output-on-failure --output-junit results/ctest.xml) || status=1
done
python3 scripts/summary.py build/release build/asan || status=1
exit $status

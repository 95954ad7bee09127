#!/usr/bin/env bash
# wheel_test.sh [FOLDER]: builds the wheel as `pip install .` does, installs it into an environment of its own with numpy
# alone, and runs the example there. FLUX_CUDA=OFF in the environment leaves the kernels out; PYTHON names the interpreter:
# from 3.12 on one wheel serves all (abi3), 3.10 and 3.11 get one each.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/wheel}
python=${PYTHON:-.venv/bin/python}
mkdir -p "$out"
start=$SECONDS
rm -f "$out"/*.whl
"$python" -m pip wheel . --quiet --no-deps --wheel-dir "$out" ${FLUX_CUDA:+--config-settings=cmake.define.FLUX_CUDA=$FLUX_CUDA}
wheel=$(ls "$out"/*.whl)
echo "wheel_test: $(basename "$wheel"), $(du -k "$wheel" | cut -f1) KiB, built in $((SECONDS - start)) s"
"$python" -m venv --clear "$out/fresh"
"$out/fresh/bin/pip" install --quiet --disable-pip-version-check "$wheel" numpy
example=$PWD/examples/python_numpy.py
(cd "$out" && "./fresh/bin/python" "$example" && "./fresh/bin/python" -c "import flux; print(flux.report())")

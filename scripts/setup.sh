#!/usr/bin/env bash
# setup.sh build|test|lint: brings what building, testing or linting needs. Quick when all is there.
# As root it installs Debian packages; otherwise it prints the one line that would, and goes on with what there is.
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:-build}

packages=(build-essential ca-certificates cmake git ninja-build python3 python3-venv
          libcli11-dev libeigen3-dev libfmt-dev nlohmann-json3-dev)
python_packages=()
if [ "$goal" != build ]; then
  packages+=(chromium clang-format libbenchmark-dev libgtest-dev libopenmpi-dev openmpi-bin python3-dev)
  python_packages+=(nanobind numpy playwright pytest safetensors torch transformers)
fi
[ "$goal" != lint ] || packages+=(clang-tidy)

say() { echo "setup: $*"; }

# Debian packages.
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
else
  say "not a Debian system, so packages are yours to install: ${packages[*]}"
fi
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "${missing[@]}" >/dev/null
  else
    say "missing packages; install them with: sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
fi

# The Python environment, made anew when this list of packages changes.
stamp=.venv/.packages
if [ ! -x .venv/bin/python ]; then
  say "making the Python environment .venv"
  python3 -m venv .venv
fi
for package in "${python_packages[@]}"; do
  grep -qsx "$package" "$stamp" && continue
  say "installing ${python_packages[*]} into .venv"
  .venv/bin/pip install --quiet --disable-pip-version-check "${python_packages[@]}"
  printf '%s\n' "${python_packages[@]}" >"$stamp"
  break
done

# CUTLASS headers, where they can be of use.
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null && [ ! -f .deps/cutlass/include/cutlass/cutlass.h ]; then
  for package in nvidia-cutlass==4.2.0.0 flashinfer-python nvidia-mathdx tilelang; do
    say "fetching CUTLASS headers from the package $package"
    .venv/bin/python scripts/fetch.py "$package" include/cutlass/cutlass.h .deps/cutlass 'include/*' 'LICENSE*' && break
  done
  [ -f .deps/cutlass/include/cutlass/cutlass.h ] || say "no CUTLASS headers found; CUDA code will not be built"
fi
say "ready to $goal"

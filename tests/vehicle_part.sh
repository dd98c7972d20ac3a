#!/usr/bin/env bash
# The part that runs in a vehicle, without torch, on the Pythons of JetPack 6 (3.10) and 7 (3.12):
# its packages exist for aarch64, and its tests pass; perturbations also with numpy 1.26.
set -euo pipefail
cd "$(dirname "$0")/.."

python_for() {  # the newest interpreter of one version, from pyenv or PATH
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python 2>/dev/null | tail -n 1 | grep . \
    || command -v "python$1" || true
}

perturb_with_numpy_1() {  # the oldest that we allow gives the same pixels as the numpy 2 of all tests
  local numpy_1=$1/numpy-1.26
  [ -d "$numpy_1" ] || "$1/bin/python" -m pip -qq --disable-pip-version-check install --progress-bar off \
    --no-deps --target "$numpy_1" 'numpy==1.26.4'
  PYTHONPATH=$numpy_1 "$1/bin/python" -c 'import numpy; print("perturbations with numpy", numpy.__version__)'
  PYTHONPATH=$numpy_1 "$1/bin/python" -m pytest -q -p no:cacheprovider tests/property/test_perturbation_golden.py
}

for version in 3.10 3.12; do
  # Faults take minutes of waiting: they are rehearsed on the oldest Python, and on the one of `make test`.
  chosen=(tests); [ "$version" = 3.10 ] || chosen=(tests --ignore=tests/faults --ignore=tests/soak)
  python=$(python_for "$version")
  if [ -z "$python" ]; then echo "Python $version is not on this machine: skipped"; continue; fi
  environment=.venv/vehicle-$version
  pip=("$environment/bin/python" -m pip -qq --disable-pip-version-check)
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"

  "${pip[@]}" install --progress-bar off -c constraints.txt -e '.[vehicle]' \
    pytest pytest-timeout pytest-xdist hypothesis httpx
  "$environment/bin/python" -m pytest -q -p no:cacheprovider -n 2 --dist loadfile "${chosen[@]}"
  [ "$version" != 3.10 ] || perturb_with_numpy_1 "$environment"

  wheels=$(mktemp -d)
  "${pip[@]}" wheel --no-deps -w "$wheels" .
  "${pip[@]}" download --progress-bar off --only-binary=:all: -c constraints.txt -d "$wheels" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    "$(ls "$wheels"/edge_road-*.whl)[vehicle]"
  echo "Python $version on aarch64: $(ls "$wheels" | wc -l) wheels"
  rm -r "$wheels"
done

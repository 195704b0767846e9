#!/usr/bin/env bash
# Tests of the C sources with the address and undefined-behaviour sanitizers. Usage: tools/sanitize.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-.venv/bin/python}")
compiler=${CC:-cc}
library=$($compiler -print-file-name=libasan.so 2>/dev/null || true)
if [ ! -e "$library" ]; then
  echo "sanitize: skipped, $compiler has no libasan.so"
  exit 0
fi
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# -O1 because -O3 with sanitizers takes minutes to compile.
export JOINTWISE_CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'
export JOINTWISE_LDFLAGS='-fsanitize=address,undefined'
"$python" setup.py -q build --build-base "$build/base" --build-lib "$build/lib" >"$build/log" 2>&1 || { tail -20 "$build/log"; exit 1; }
export PYTHONPATH=$build/lib LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1
"$python" -c 'import sys, jointwise._native as n; sys.exit(not n.__file__.startswith(sys.argv[1]))' "$build/lib"
echo "sanitize: native tests with the address and undefined-behaviour sanitizers"
"$python" -m pytest -x -p no:cacheprovider tests/test_native.py tests/test_native_calls.py tests/test_stiffness_kernel.py

#!/bin/sh
# Configures a preset once, then builds it (ninja reruns CMake when a CMakeLists.txt changes):
#
#   scripts/build.sh PRESET [ninja options]      release: build/   asan: build-asan/   clang: build-clang/

set -eu
cd "$(dirname "$0")/.."

preset=$1
shift
case $preset in
release) dir=build ;;
*) dir=build-$preset ;;
esac

# A changed preset means a fresh configuration; the cache would keep the old flags.
if [ ! -f $dir/build.ninja ] || [ CMakePresets.json -nt $dir/CMakeCache.txt ]; then
  cmake --preset "$preset" --fresh --log-level=NOTICE
fi
cmake --build $dir -- "$@"

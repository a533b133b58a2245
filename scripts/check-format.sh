#!/bin/sh
# Checks that clang-format would change nothing; `--fix` lets it change things.

set -eu
cd "$(dirname "$0")/.."
case ${1-} in
--fix) mode=-i ;;
*) mode='--dry-run -Werror' ;;
esac
scripts/sources.sh '*.h' '*.cpp' '*.c' '*.cu' '*.cuh' |
  xargs -r -P "$(nproc)" -n 16 /usr/lib/llvm-22/bin/clang-format --style=file $mode

#!/bin/sh
# An architecture is a file of models/architectures; code knows none of them. Prints every line of the
# compiler and the runtime that has one's name outside a comment, and exits 1 if there was any.
#
#   scripts/check-names.sh [ROOT]

set -eu
cd "${1:-$(dirname "$0")/..}"
names=$(ls models/architectures | sed 's/\.yaml$//; s/[-_]/[-_]?/g' | paste -sd '|' -)
find frontend ir passes codegen runtime -name '*.h' -o -name '*.cpp' | LC_ALL=C sort |
  xargs sed -s 's|//.*||; F' | awk '
    # sed prints the name of the file before each line.
    NR % 2 { file = $0; line = file == last ? line + 1 : 1; last = file; next }
    { print file ":" line ": " $0 }' |
  grep -wE "[^:]*:[0-9]+: .*\b($names)\b" && exit 1
exit 0

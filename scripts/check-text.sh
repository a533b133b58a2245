#!/bin/sh
# Checks every text file of the tree: no tabs, no spaces at line ends, at most 1000 lines, a final
# newline; and no file over 2 MB. Golden data under test/oracle is exempt.
#
#   scripts/check-text.sh [FILE...]      default: the whole tree

set -eu
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
  set -f
  IFS='
'
  set -- $(scripts/sources.sh)
fi

bad=0
tab=$(printf '\t')
complain() { echo "$1"; bad=1; }

for file; do
  case $file in
  test/oracle/*) continue ;;
  esac
  size=$(stat -c %s "$file")
  [ "$size" -le 2097152 ] || complain "$file: is $size bytes; at most 2097152"
  [ "$size" -gt 0 ] && grep -Iq . "$file" || continue # empty or binary
  lines=$(grep -c '' "$file")
  # What is generated is as long as what it describes.
  case $file in docs/reference/*) lines=0 ;; esac
  [ "$lines" -le 1000 ] || complain "$file: has $lines lines; at most 1000"
  [ -z "$(tail -c 1 "$file")" ] || complain "$file: does not end in a newline"
  hits=$(grep -nE '[[:space:]]+$' "$file" | head -n 3 | cut -d: -f1) || true
  for line in $hits; do complain "$file:$line: space at the end of the line"; done
  case $file in
  Makefile | */Makefile) continue ;; # make wants tabs
  esac
  hits=$(grep -nF "$tab" "$file" | head -n 3 | cut -d: -f1) || true
  for line in $hits; do complain "$file:$line: tab"; done
done
exit $bad

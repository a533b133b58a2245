#!/bin/sh
# Lists the tree's own files, tracked or not yet, one a line:
#
#   scripts/sources.sh [NAME-PATTERN...]      scripts/sources.sh '*.h' '*.cpp'
#
# In a tree without git (an unpacked archive) everything but the build directories is listed.

set -eu
cd "$(dirname "$0")/.."
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -co --exclude-standard -- "$@"
else
  find . -type f ! -path './build*' ! -path '*/.*' | sed 's|^\./||' |
    awk 'BEGIN { n = ARGC; for (i = 1; i < n; ++i) { want[i] = ARGV[i]; ARGV[i] = "" }
                 for (i = 1; i < n; ++i) { gsub(/\./, "\\.", want[i]); gsub(/\*/, ".*", want[i]) } }
         n == 1 { print; next }
         { for (i = 1; i < n; ++i) if ($0 ~ "^" want[i] "$") { print; next } }' "$@"
fi | while IFS= read -r file; do
  [ ! -f "$file" ] || echo "$file"
done | LC_ALL=C sort

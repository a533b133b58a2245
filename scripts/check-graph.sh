#!/bin/sh
# Opens pictures and pages of `tenon graph` in a headless browser and looks for faults that only a
# browser sees (check-graph.js says which), also with all layers folded and unfolded.
#
#   scripts/check-graph.sh F.svg|F.html...
#
# Prints one line for each file and exits 1 if one has a fault; without chromium it says so and
# checks nothing.

set -eu
check=$(dirname "$0")/check-graph.js
if ! command -v chromium >/dev/null; then
  echo "check-graph: skipped, there is no chromium (scripts/install-deps.sh installs it)"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bad=0
for file; do
  {
    case $file in
    *.svg) echo '<!DOCTYPE html><meta charset="utf-8"><body>' && cat "$file" ;;
    *) sed 's|</body>.*||; s|</html>.*||' "$file" ;;
    esac
    echo '<script>' && cat "$check" && echo '</script></body></html>'
  } >"$work/page.html"
  # A profile of its own, and no shared memory: containers have little.
  timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$work/profile" --window-size=1400,1000 --enable-logging=stderr \
    --dump-dom "file://$work/page.html" >"$work/dom" 2>"$work/log" || true
  found=$(sed -n 's/.*<body[^>]* data-check="\([^"]*\)".*/\1/p' "$work/dom" | head -n 1)
  console=$(grep -m 1 'CONSOLE' "$work/log" || true)
  echo "$file: ${found:-the browser gave no answer}${console:+; console: $console}"
  case $found in ok*) [ -z "$console" ] || bad=1 ;; *) bad=1 ;; esac
done
exit $bad

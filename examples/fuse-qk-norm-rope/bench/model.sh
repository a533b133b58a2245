#!/bin/sh
# What the plugin is worth on Qwen3-shaped blocks: compiles some with and without it, and runs both in turns.
#
#   bench/model.sh BUILD/fuse-qk-norm-rope.so [options of `tenon compile`, such as --precision int4]
#
# The median over ROUNDS of each round's best is shown. Every round runs fresh copies: where a file lies in memory is
# worth some percent. THREADS=N; RUN="chrt -f 10" keeps other work of the machine away.
set -eu
plugin=$1
shift
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# A few layers and a small vocabulary, so that the blocks decide.
models=$(dirname "$(command -v tenon)")/../share/tenon/models
set -- "$models/qwen3-0.6b.yaml" --set layers=2 --set vocab=1024 --weights random:1 "$@"
tenon compile "$@" -o "$here/without" 2>/dev/null
tenon compile "$@" --load-plugin="$plugin" -o "$here/with" 2>/dev/null

for _ in $(seq "${ROUNDS:-11}"); do
  for which in without with; do
    cp "$here/$which" "$here/run"
    ${RUN:-} "$here/run" bench -p 32,128,512 -n 32 -d 0,512 -b 1 -r 4 ${THREADS:+--threads "$THREADS"} |
      sed -n "s|tok/s||; s|^|$which |; /prefill\|decode/p"
  done
done | awk '
  { speed = $NF; which = $1; $1 = $NF = ""; name = which $0; n = ++count[name]
    for (; n > 1 && sorted[name, n - 1] > speed; --n) sorted[name, n] = sorted[name, n - 1]
    sorted[name, n] = speed
    if (which == "without" && count[name] == 1) order[++cases] = $0 }
  function median(name) { return sorted[name, int((count[name] + 1) / 2)] }
  END {
    printf "%-28s %10s %10s %8s\n", "tok/s", "without", "with", "ratio"
    for (i = 1; i <= cases; ++i) {
      a = median("without" order[i]); b = median("with" order[i])
      printf "%-28s %10.1f %10.1f %8.3f\n", order[i], a, b, b / a
    }
  }'

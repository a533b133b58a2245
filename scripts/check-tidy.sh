#!/bin/sh
# Runs clang-tidy on the C++ files of the product that changed, with the compile commands of a clang build:
#
#   scripts/check-tidy.sh BUILD_DIR [--all]
#
# Changed means: since this branch left origin/main; on main itself, in its last 20 commits. A
# changed header is read through one source that includes it.

set -eu
cd "$(dirname "$0")/.."
build=$1
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT

changed() {
  if [ "${2-}" = --all ]; then
    scripts/sources.sh
    return
  fi
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse -q --verify HEAD~20 || true)
  fi
  if [ -z "$base" ]; then
    scripts/sources.sh
    return
  fi
  git diff --name-only --diff-filter=d "$base"
  git ls-files -o --exclude-standard
}

changed "$@" | while IFS= read -r file; do
  case $file in
  *.cpp) echo "$file" ;;
  *.h) scripts/sources.sh '*.cpp' | grep -v '^test/' | xargs -r grep -lF "#include \"$file\"" | head -n 1 ;;
  esac
# Tests are read by two compilers and run under sanitizers instead.
done | grep -v '^test/' | sort -u | while IFS= read -r file; do
  # Only what the build compiles: fixtures and templates are not.
  ! grep -qF "$PWD/$file\"" "$build/compile_commands.json" || echo "$file"
done >"$sources"

echo "clang-tidy: $(wc -l <"$sources") files"
status=0
xargs -r -P "${JOBS:-$(nproc)}" -n 1 \
  /usr/lib/llvm-22/bin/clang-tidy -p "$build" --quiet --warnings-as-errors='*' \
  <"$sources" >"$build/tidy.log" 2>&1 || status=$?
grep -vE '^[0-9]+ warnings? (generated|treated)|^$' "$build/tidy.log" || true
[ $status = 0 ]

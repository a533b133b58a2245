#!/bin/sh
# Runs the GoogleTest suites (through ctest) and the lit suite of a build directory and closes with
# one line that counts all of them: "N passed, N failed" (", N skipped").
#
#   scripts/run-tests.sh BUILD_DIR [NAME]     NAME: only tests whose name matches this regex
#
# Exits 1 when a test failed, or when none ran.

set -eu
cd "$(dirname "$0")/.."
build=$1
name=${2-}
jobs=${JOBS:-$(nproc)}

# libLLVM is not instrumented, so it does not unpoison memory that our inlined copies of its
# allocators have poisoned. (Only read by the sanitizer build.)
export ASAN_OPTIONS="allow_user_poisoning=0:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

ctest_xml=$PWD/$build/ctest.xml
lit_json=$PWD/$build/lit.json
rm -f "$ctest_xml" "$lit_json"

echo "== unit tests ($build)"
unit=0
ctest --test-dir "$build" -j"$jobs" --output-on-failure --no-tests=ignore \
  --output-junit "$ctest_xml" ${name:+-R "$name"} >"$build/ctest.log" 2>&1 || unit=$?
if [ $unit = 0 ]; then tail -n 4 "$build/ctest.log"; else cat "$build/ctest.log"; fi

echo "== lit tests ($build)"
lit=0
/usr/lib/llvm-22/bin/lit -sv --no-progress-bar -j"$jobs" -o "$lit_json" ${name:+--filter "$name" --allow-empty-runs} \
  "$build/test" || lit=$?

# ctest writes one <testcase status="run|fail|notrun|disabled"> a test, lit one "code": "..." a test.
count() { [ ! -f "$1" ] || grep -cE "$2" "$1" || true; }
unit_passed=$(count "$ctest_xml" '<testcase .*status="run"')
unit_failed=$(count "$ctest_xml" '<testcase .*status="fail"')
unit_skipped=$(count "$ctest_xml" '<testcase .*status="(notrun|disabled)"')
lit_passed=$(count "$lit_json" '"code": "(PASS|FLAKYPASS|XFAIL)"')
lit_failed=$(count "$lit_json" '"code": "(FAIL|XPASS|UNRESOLVED|TIMEOUT)"')
lit_skipped=$(count "$lit_json" '"code": "(UNSUPPORTED|SKIPPED)"')
passed=$((${unit_passed:-0} + ${lit_passed:-0}))
failed=$((${unit_failed:-0} + ${lit_failed:-0}))
skipped=$((${unit_skipped:-0} + ${lit_skipped:-0}))

[ $unit = 0 ] || echo "run-tests: ctest exited with $unit"
[ $lit = 0 ] || echo "run-tests: lit exited with $lit"
[ $passed -gt 0 ] || echo "run-tests: no test passed"
skips=
[ $skipped = 0 ] || skips=", $skipped skipped"
echo "$passed passed, $failed failed$skips"
[ $unit = 0 ] && [ $lit = 0 ] && [ $failed = 0 ] && [ $passed -gt 0 ]

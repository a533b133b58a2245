#!/bin/sh
# What someone outside the tree relies on: Tenon is installed, moved to another folder, and from there
# alone plugins are written, built and tested.
#
#   scripts/check-plugins.sh BUILD_DIR
#
# 1. `tenon new pass|op|backend`: each project builds and its tests pass untouched.
# 2. examples/: the plugins that lie there, likewise.
# 3. docs/plugins.md: its commands and files, in order, literally.
# 4. Loading ten plugins costs no more than 50 ms.

set -eu
cd "$(dirname "$0")/.."
tree=$PWD
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/sdk" # it works wherever it lies
export PATH="$work/sdk/bin:$PATH"
export TENON_CUDA_DRIVER="$build/lib/libtenon_emulated_cuda.so"

# build_and_check SOURCE: prints what failed, if anything did.
build_and_check() {
  name=$(basename "$1")
  if cmake -S "$1" -B "$work/build-$name" -G Ninja -DCMAKE_PREFIX_PATH="$work/sdk" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wno-unused-parameter" >"$work/$name.log" 2>&1 &&
    ninja -C "$work/build-$name" all check >>"$work/$name.log" 2>&1 &&
    ! grep -E 'warning:' "$work/$name.log"; then
    echo "ok   $name"
  else
    tail -n 60 "$work/$name.log"
    echo "FAIL $name"
    exit 1
  fi
}

cd "$work"
for kind in pass op backend; do
  tenon new $kind "my-$kind" >/dev/null
  build_and_check "$work/my-$kind"
done
for example in "$tree"/examples/*/CMakeLists.txt; do
  build_and_check "$(dirname "$example")"
done

# Ten plugins: copies of one under ten names.
mkdir ten
for i in 0 1 2 3 4 5 6 7 8 9; do
  sed "s/\"my-pass\"/\"my-pass-$i\"/; s/return \"my-pass\"/return \"my-pass-$i\"/" my-pass/MyPass.cpp >ten/$i.cpp
done
cat >ten/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(ten LANGUAGES C CXX)
find_package(Tenon REQUIRED)
foreach(i RANGE 9)
  tenon_add_plugin(ten-${i} SOURCES ${i}.cpp)
endforeach()
EOF
cmake -S ten -B build-ten -G Ninja -DCMAKE_PREFIX_PATH="$work/sdk" -DCMAKE_CXX_FLAGS=-O1 >ten.log 2>&1
ninja -C build-ten >>ten.log 2>&1 || { tail -n 30 ten.log && exit 1; }
TENON_PLUGIN_PATH=$work/build-ten tenon plugins | grep -c '^my-pass-' | grep -qx 10
best() {
  for _ in 1 2 3 4 5 6 7 8 9; do
    start=$(date +%s%N)
    tenon plugins >/dev/null
    echo $((($(date +%s%N) - start) / 1000))
  done | sort -n | head -n 1
}
without=$(best)
with=$(TENON_PLUGIN_PATH=$work/build-ten best)
echo "ok   ten plugins load in $((with - without)) us"

mkdir tutorial
cd tutorial
"$tree/scripts/run-tutorial.sh" "$tree/docs/plugins.md" >../tutorial.log 2>&1 || {
  tail -n 60 ../tutorial.log
  echo "FAIL docs/plugins.md"
  exit 1
}
echo "ok   docs/plugins.md"

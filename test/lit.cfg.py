# The lit suite: every .mlir, .yaml and .test file under test/ with a RUN line.
#
#   make test                       all of it, with the unit tests
#   lit -v build/test --filter=RE   what matches a regex (lit is in /usr/lib/llvm-22/bin)
#
# A test reaches the tools by name (tenon, tenon-opt, FileCheck, not, split-file), the tree's own
# files by %source, golden data by %oracle, model files by %models.

import os
import shutil
import sys

import lit.formats

config.name = "Tenon"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".yaml", ".test"]
config.excludes = ["Inputs", "oracle", "unit"]
config.test_source_root = os.path.join(config.tenon_source, "test")
config.test_exec_root = os.path.join(config.tenon_build, "test")

tools = [os.path.join(config.tenon_build, "bin"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])

config.substitutions += [
    ("%source", config.tenon_source),
    ("%build", config.tenon_build),
    ("%oracle", os.path.join(config.test_source_root, "oracle")),
    ("%models", os.path.join(config.tenon_source, "models")),
    ("%cxx", config.cxx),
    ("%nvdisasm", config.nvdisasm),
    ("%emulated_cuda", os.path.join(config.tenon_build, "lib", "libtenon_emulated_cuda.so")),
    ("%python", sys.executable),
]

# The compiler looks for weights in this cache too; `tenon run` compiles into it.
for name in ("HOME", "TENON_CACHE", "XDG_CACHE_HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# REQUIRES: smollm2        the real model is in the cache (scripts/install-deps.sh puts it there)
# REQUIRES: chromium       a browser, to look at what `tenon graph` draws
# REQUIRES: valgrind       to count instructions
# REQUIRES: nvrtc, nvdisasm   NVIDIA's tools, as CMake found them
# UNSUPPORTED: sanitized   what links an executable against the runtime cannot be sanitized
cache = os.environ.get("TENON_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tenon"
)
if os.path.exists(os.path.join(cache, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")):
    config.available_features.add("smollm2")
config.available_features.update(filter(shutil.which, ["chromium", "valgrind"]))
for tool in ("nvrtc", "nvdisasm"):
    if os.path.exists(getattr(config, tool)):
        config.available_features.add(tool)
if config.sanitized:
    config.available_features.add("sanitized")

# Everything Tenon builds on. `scripts/install-deps.sh` installs what is missing.

# "22" alone is refused by LLVM's version file.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
# Debian builds libMLIR.so but does not say so in its config.
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})
set(TENON_LLVM_TOOLS ${LLVM_TOOLS_BINARY_DIR})

find_package(yaml-cpp 0.7 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(Threads REQUIRED)

# oneDNN: a system one first, else the wheel that the install script unpacked. It is only loaded at run time, so
# that headers are all the build needs.
find_path(TENON_DNNL_INCLUDE_DIR dnnl.h PATHS ${CMAKE_SOURCE_DIR}/build/deps/onednn/include)
find_library(TENON_DNNL_LIBRARY NAMES dnnl libdnnl.so.3 PATHS ${CMAKE_SOURCE_DIR}/build/deps/onednn/lib)
if(NOT TENON_DNNL_INCLUDE_DIR)
  message(FATAL_ERROR "dnnl.h not found: run scripts/install-deps.sh")
endif()
file(STRINGS ${TENON_DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h version REGEX "define DNNL_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]*([0-9]+).*" "\\1.\\2" version "${version}")
if(version VERSION_LESS 3.2)
  message(FATAL_ERROR "oneDNN ${version} in ${TENON_DNNL_INCLUDE_DIR} is older than 3.2: run scripts/install-deps.sh")
endif()

# NVRTC compiles CUDA kernels when a model is compiled for a GPU; like oneDNN it is loaded only then, and everything
# else works without it.
find_library(TENON_NVRTC_LIBRARY NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12
             PATHS /usr/local/cuda/lib64 ${CMAKE_SOURCE_DIR}/build/deps/nvrtc/lib)

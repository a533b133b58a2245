// tenon-compile-kernels FILE ARCHITECTURE OUT: what the code generator does with the text that it
// writes. OUT gets PTX for compute_80 and the like, a cubin for sm_80.
#include "codegen/cuda/Nvrtc.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

int main(int count, char **arguments) {
  llvm::ExitOnError exitOnError("tenon-compile-kernels: ");
  if (count != 4)
    exitOnError(llvm::createStringError("FILE ARCHITECTURE OUT"));
  auto source = llvm::MemoryBuffer::getFile(arguments[1]);
  if (!source)
    exitOnError(llvm::errorCodeToError(source.getError()));
  tenon::TargetOptions options;
  options.deviceFolder = TENON_SOURCE_DIR;
  options.nvrtcPath = TENON_NVRTC;
  std::string code = exitOnError(
      tenon::cuda::compileWithNvrtc((*source)->getBuffer().str(), arguments[2], options));
  std::error_code error;
  llvm::raw_fd_ostream out(arguments[3], error);
  exitOnError(llvm::errorCodeToError(error));
  bool isText = llvm::StringRef(arguments[2]).starts_with("compute_");
  out << (isText ? llvm::StringRef(code.c_str()) : code); // text without the zero that ends it
}

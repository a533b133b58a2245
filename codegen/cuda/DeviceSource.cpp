// See DeviceSource.h.
#include "codegen/cuda/DeviceSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <map>

namespace tenon::cuda {

std::string writeSource(const DeviceProgram &program) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#include \"kernels.cu\"\n";
  for (const DeviceKernelSet *set : program.getSets())
    out << "\n// " << set->name << '\n' << set->source;
  std::map<std::vector<uint8_t>, size_t> shapes; // numbers
  for (const DeviceKernel &kernel : program.getKernels()) {
    if (kernel.launch.product.cols)
      continue; // a library's
    auto [shape, isNew] = shapes.try_emplace(kernel.shape, shapes.size());
    if (isNew) {
      std::vector<int32_t> words(kernel.shape.size() / sizeof(int32_t));
      std::memcpy(words.data(), kernel.shape.data(), kernel.shape.size());
      out << "\nstatic constexpr int shape" << shape->second << "[] = {"
          << llvm::join(llvm::map_range(words, [](int32_t word) { return std::to_string(word); }),
                        ", ")
          << "};\n";
    }
    out << (kernel.launch.early ? "TK_SPECIALISE_EARLY(" : "TK_SPECIALISE(") << kernel.symbol
        << ", " << kernel.launch.function << ", " << kernel.shapeType << ", "
        << kernel.launch.threads << ", shape" << shape->second << ")\n";
  }
  return text;
}

} // namespace tenon::cuda

// See PluginRegistry.h.
#include "plugin/PluginRegistry.h"
#include "codegen/Error.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using llvm::StringRef;

namespace tenon {

std::string PluginRegistry::getFolder() const {
  return llvm::sys::path::parent_path(plugin.path).str();
}

void PluginRegistry::addPass(std::function<std::unique_ptr<mlir::Pass>()> make, StringRef point) {
  std::string name = make()->getArgument().str();
  if (name.empty())
    return fail("a pass without a name (getArgument)");
  if (mlir::PassInfo::lookup(name))
    return fail("there is a pass '" + name + "' already");
  mlir::registerPass(make);
  plugin.passes.push_back(name);
  if (point.empty())
    return;
  llvm::Expected<Insertion> insertion = parseInsertion((point + ":" + name).str());
  if (!insertion)
    return fail(llvm::toString(insertion.takeError()));
  plugin.insertions.push_back(*insertion);
}

void PluginRegistry::addArchitectures(StringRef folder) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code))
    if (llvm::sys::path::extension(it->path()) == ".yaml")
      claim(plugin.architectures, "architecture", llvm::sys::path::stem(it->path()));
  if (code)
    return fail("cannot read the architectures in " + folder + ": " + code.message());
  registerArchitectures(folder);
}

void PluginRegistry::addKernels(cpu::KernelSet kernels) {
  if (claim(plugin.kernels, "kernel set", kernels.name))
    cpu::registerKernels(std::move(kernels));
}

void PluginRegistry::addKernels(cuda::DeviceKernelSet kernels) {
  if (claim(plugin.kernels, "kernel set", kernels.name))
    cuda::registerDeviceKernels(std::move(kernels));
}

void PluginRegistry::addBackend(StringRef name, BackendFactory make) {
  if (!registerBackend(name, std::move(make)))
    return fail("there is a backend '" + name + "' already");
  plugin.backends.push_back(name.str());
}

void PluginRegistry::addModelReader(ModelReader reader) {
  if (claim(plugin.readers, "model reader", reader.name))
    registerModelReader(std::move(reader));
}

void PluginRegistry::addWeightFormat(WeightFormat format) {
  if (claim(plugin.weightFormats, "weight format", format.name))
    registerWeightFormat(std::move(format));
}

bool PluginRegistry::claim(std::vector<std::string> &list, StringRef what, StringRef name) {
  // The dialects of the compiler, and all that plugins have claimed.
  static std::set<std::string> taken = {"dialect llm", "dialect sched"};
  if (!taken.insert((what + " " + name).str()).second) {
    fail("there is a " + what + " '" + name + "' already");
    return false;
  }
  list.push_back(name.str());
  return true;
}

void PluginRegistry::fail(const llvm::Twine &message) {
  if (error.empty())
    error = message.str();
}

llvm::Error PluginRegistry::takeError() {
  return error.empty() ? llvm::Error::success() : refused(error);
}

} // namespace tenon

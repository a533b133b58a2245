// What a plugin may add to the compiler.
#ifndef TENON_PLUGIN_PLUGINREGISTRY_H
#define TENON_PLUGIN_PLUGINREGISTRY_H

#include "codegen/Backend.h"
#include "codegen/Version.h"
#include "codegen/cpu/KernelSet.h"
#include "codegen/cuda/DeviceKernelSet.h"
#include "frontend/Extensions.h"
#include "ir/LLM.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "passes/Pipeline.h"
#include "plugin/PluginNote.h"
#include "llvm/Config/llvm-config.h"

namespace tenon {

// One plugin and what it has added.
struct Plugin {
  std::string name, version, path;
  std::vector<std::string> passes, dialects, architectures, kernels, backends, readers,
      weightFormats;
  std::vector<Insertion> insertions;
};

// A name that is taken, a pass for a point that does not exist and the like are reported when the
// plugin has returned; the first counts.
class PluginRegistry {
public:
  PluginRegistry(Plugin &plugin, mlir::DialectRegistry &dialects)
      : plugin(plugin), dialects(dialects) {}

  // The folder that the plugin's file lies in, for data beside it.
  std::string getFolder() const;

  // A pass, known to `--NAME`, `--pass-pipeline` and `--insert-at=POINT:NAME`. With a point
  // (Pipeline.cpp lists them) it runs there in every compilation.
  void addPass(std::function<std::unique_ptr<mlir::Pass>()> make, llvm::StringRef point = "");

  // A dialect whose operations may stand in modules and, with TemplateOpInterface, in architecture
  // files: `my_dialect.my_op: {...}`.
  template <typename Dialect> void addDialect() {
    if (claim(plugin.dialects, "dialect", Dialect::getDialectNamespace()))
      dialects.insert<Dialect>();
  }

  // Every .yaml file of a folder becomes an architecture with the file's name.
  void addArchitectures(llvm::StringRef folder);

  // CPU kernels that are tried before Tenon's own.
  void addKernels(cpu::KernelSet kernels);
  // CUDA kernels, likewise.
  void addKernels(cuda::DeviceKernelSet kernels);

  // `--target NAME`.
  void addBackend(llvm::StringRef name, BackendFactory make);

  // Another kind of model description.
  void addModelReader(ModelReader reader);

  // Another kind of checkpoint.
  void addWeightFormat(WeightFormat format);

  llvm::Error takeError();

private:
  // Enters a name in a list of the plugin, unless the name is taken.
  bool claim(std::vector<std::string> &list, llvm::StringRef what, llvm::StringRef name);
  void fail(const llvm::Twine &message);

  Plugin &plugin;
  mlir::DialectRegistry &dialects;
  std::string error;
};

} // namespace tenon

#endif // TENON_PLUGIN_PLUGINREGISTRY_H

// What the plugin adds to the compiler.
#include "Qk.h"
#include "TenonPlugin.h"

static void add(tenon::PluginRegistry &registry) {
  registry.addDialect<qk::QkDialect>();
  // After llm-fuse-rope, which joins more in @decode: README.md has the numbers.
  registry.addPass(qk::createFuseQkNormRope, "after-attention");
  registry.addKernels(qk::getKernels());
  registry.addKernels(qk::getDeviceKernels());
}

TENON_PLUGIN("fuse-qk-norm-rope", "1.0", add)

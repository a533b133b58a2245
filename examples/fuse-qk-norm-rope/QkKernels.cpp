// Which stages the plugin's kernels compute. The operations decide, not the name of a fusion, so
// qk.norm_rope and the body of @qk_norm_rope are the same to the kernel.
#include "Qk.h"
#include "kernels/shapes.h"
#include "plugin/EmbeddedKernels.h"
#include <cstring>

using namespace mlir;
using namespace tenon;
using namespace tenon::llm;

namespace qk {
namespace {

// Which operand of the stage an argument of its kernel is: argument 0 is the batch.
std::optional<unsigned> getInput(sched::KernelOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &kernel.getBody().front() || argument.getArgNumber() == 0)
    return std::nullopt;
  return argument.getArgNumber() - 1;
}

int32_t getStride(sched::StageOp stage, unsigned operand) {
  return sched::getRowStride(cast<MemRefType>(stage.getOperand(operand).getType()));
}

// One or two norms with their rotations, and nothing else.
std::optional<KernelMatch> match(sched::StageOp stage, sched::KernelOp kernel, bool /*isDecode*/) {
  ValueRange results = kernel.getTerminator()->getOperands();
  if (results.empty() || results.size() > 2)
    return std::nullopt;
  qk_norm_rope_shape shape = {};
  SmallVector<unsigned> io;
  Value angles;
  size_t operations = 0;
  for (auto [i, result] : llvm::enumerate(results)) {
    std::optional<NormRope> match = NormRope::match(result);
    if (!match)
      return std::nullopt;
    auto x = getInput(kernel, match->input), weight = getInput(kernel, match->weight),
         angle = getInput(kernel, match->angles);
    if (!x || !weight || !angle)
      return std::nullopt;
    if (i && (match->angles != angles || match->headDim != shape.head_dim ||
              int32_t(match->style) != shape.style))
      return std::nullopt;
    unsigned out = stage.getInputs().size() + i;
    (i ? shape.second : shape.first) = {int32_t(match->heads), getStride(stage, *x),
                                        getStride(stage, out), float(match->eps)};
    shape.head_dim = match->headDim;
    shape.rotary_dim = getColumns(match->angles);
    shape.style = int32_t(match->style);
    shape.angles_stride = getStride(stage, *angle);
    io.append({*x, *weight});
    if (i == 0)
      io.push_back(*angle);
    io.push_back(out);
    angles = match->angles;
    operations += match->operations;
  }
  if (operations + 1 != kernel.getBody().front().getOperations().size())
    return std::nullopt;
  return makeMatch("qk_norm_rope", shape, io);
}

} // namespace

cpu::KernelSet getKernels() { return {"qk", match, getEmbeddedKernels}; }

// A warp for each head, four to a block.
static cuda::LaunchPlan plan(const KernelMatch &match, bool /*isDecode*/) {
  qk_norm_rope_shape shape;
  std::memcpy(&shape, match.shape.data(), sizeof shape);
  tk_launch launch = {};
  launch.function = "qk_norm_rope";
  launch.threads = 128;
  launch.columns = (shape.first.heads + shape.second.heads + 3) / 4;
  launch.rows_per_block = 1;
  return {"qk_norm_rope_shape", match.shape, {launch}};
}

cuda::DeviceKernelSet getDeviceKernels() {
  return {"qk-cuda", match, plan, getEmbeddedDeviceSource().str()};
}

} // namespace qk

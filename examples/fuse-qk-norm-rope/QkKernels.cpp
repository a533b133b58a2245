// Which stages the plugin's kernels compute. The operations decide, not the name of a fusion, so
// qk.norm_rope and the body of @qk_norm_rope are the same to the kernel.
#include "Qk.h"
#include "kernels/shapes.h"
#include "plugin/EmbeddedKernels.h"

using namespace mlir;
using namespace tenon;
using namespace tenon::llm;
using cpu::KernelMatch;

namespace qk {
namespace {

template <typename Shape>
KernelMatch makeMatch(StringRef function, const Shape &shape, SmallVector<unsigned> io) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&shape);
  return {function.str(), {bytes, bytes + sizeof shape}, std::move(io)};
}

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
std::optional<KernelMatch> matchNormRope(sched::StageOp stage, sched::KernelOp kernel) {
  ValueRange results = kernel.getTerminator()->getOperands();
  if (results.empty() || results.size() > 2)
    return std::nullopt;
  qk_norm_rope_shape shape = {};
  SmallVector<unsigned> io;
  Value angles;
  size_t parts = 0;
  for (auto [i, result] : llvm::enumerate(results)) {
    std::optional<NormRope> match = NormRope::match(result);
    if (!match)
      return std::nullopt;
    auto x = getInput(kernel, match->input), weight = getInput(kernel, match->weight),
         angle = getInput(kernel, match->angles);
    bool hasOthers = i && (match->angles != angles || match->headDim != shape.head_dim ||
                           int32_t(match->style) != shape.style);
    if (!x || !weight || !angle || hasOthers)
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
    parts += match->parts.size();
  }
  if (parts + 1 != kernel.getBody().front().getOperations().size())
    return std::nullopt;
  return makeMatch("qk_norm_rope", shape, io);
}

// Tenon's own kernel, with norms before it: its matcher is asked about the body without them.
std::optional<KernelMatch> matchAttention(sched::StageOp stage, sched::KernelOp kernel,
                                          bool isDecode) {
  SmallVector<RopeOp> ropes(kernel.getOps<RopeOp>());
  SmallVector<PagedAttentionOp> attentions(kernel.getOps<PagedAttentionOp>());
  if (ropes.size() != 2 || attentions.size() != 1)
    return std::nullopt;
  qk_norm_rope_attention_shape shape = {};
  SmallVector<unsigned> weights(2);
  for (RopeOp rope : ropes) {
    std::optional<NormRope> match = NormRope::match(rope);
    auto weight = match ? getInput(kernel, match->weight) : std::nullopt;
    if (!weight)
      return std::nullopt;
    bool isQuery = attentions[0].getQuery() == rope;
    (isQuery ? shape.q_eps : shape.k_eps) = match->eps;
    weights[isQuery ? 0 : 1] = *weight;
  }

  OwningOpRef<sched::KernelOp> plain(kernel.clone());
  for (RMSNormOp norm : llvm::make_early_inc_range(plain->getOps<RMSNormOp>())) {
    norm.replaceAllUsesWith(norm.getInput());
    norm.erase();
  }
  std::optional<KernelMatch> match = cpu::matchKernel(stage, *plain, isDecode);
  if (!match || match->function != "tk_rope_attention")
    return std::nullopt;
  std::memcpy(&shape.rope, match->shape.data(), sizeof shape.rope);
  match->io.append(weights);
  KernelMatch result = makeMatch("qk_norm_rope_attention", shape, match->io);
  result.scratch = match->scratch;
  return result;
}

} // namespace

cpu::KernelSet getKernels() {
  auto match = [](sched::StageOp stage, sched::KernelOp kernel, bool isDecode) {
    std::optional<KernelMatch> found = matchNormRope(stage, kernel);
    return found ? found : matchAttention(stage, kernel, isDecode);
  };
  return {"qk", match, getEmbeddedKernels};
}

} // namespace qk

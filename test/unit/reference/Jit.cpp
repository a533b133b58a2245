// Batches, rows and caches of the tests, and the way from their text to machine code; see Jit.h.
#include "Jit.h"
#include "codegen/KernelLowering.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace tenon::test {

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Batch::Batch(std::vector<int32_t> counts, std::vector<int32_t> cached, std::vector<int32_t> rows)
    : scoredRows(std::move(rows)) {
  cached.resize(counts.size());
  starts.push_back(0);
  int32_t maxBlocks = 1;
  for (size_t s = 0; s < counts.size(); ++s) {
    for (int32_t i = 0; i < counts[s]; ++i) {
      ids.push_back(int32_t(ids.size() * 5 % 7));
      positions.push_back(cached[s] + i);
      sequenceOf.push_back(int32_t(s));
    }
    starts.push_back(int32_t(ids.size()));
    lengths.push_back(cached[s] + counts[s]);
    maxBlocks = std::max(maxBlocks, (lengths[s] + TENON_BLOCK_TOKENS - 1) / TENON_BLOCK_TOKENS);
  }
  blockCount = int64_t(counts.size()) * maxBlocks + 2;
  std::vector<int32_t> all(blockCount);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937(7));
  blockTable.assign(all.begin(), all.end() - 2);
  batch = {int32_t(ids.size()),
           int32_t(counts.size()),
           int32_t(scoredRows.size()),
           maxBlocks,
           ids.data(),
           positions.data(),
           sequenceOf.data(),
           starts.data(),
           lengths.data(),
           blockTable.data(),
           scoredRows.data(),
           nullptr,
           nullptr,
           nullptr,
           0};
}

std::vector<float> randomFloats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

Rows::Rows(int64_t count, int64_t columns)
    : count(count), columns(columns), data(count * (columns + gap), NAN) {}

Rows::Rows(int64_t count, int64_t columns, unsigned seed) : Rows(count, columns) {
  std::vector<float> values = randomFloats(count * columns, seed);
  for (int64_t i = 0; i < count * columns; ++i)
    at(i / columns, i % columns) = values[i];
}

Rows::Rows(int64_t count, int64_t columns, std::vector<double> values) : Rows(count, columns) {
  for (int64_t i = 0; i < count * columns; ++i)
    at(i / columns, i % columns) = float(values.at(i));
}

void Rows::expectNear(const std::vector<double> &want, double tolerance) {
  ASSERT_EQ(int64_t(want.size()), count * columns);
  double squares = 0;
  for (double value : want)
    squares += value * value;
  double rms = std::sqrt(squares / double(want.size()));
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double wanted = want[row * columns + column];
      ASSERT_NEAR(at(row, column), wanted, tolerance * (std::abs(wanted) + rms))
          << "row " << row << " column " << column;
    }
    for (int64_t column = columns; column < stride(); ++column)
      ASSERT_TRUE(std::isnan(at(row, column))) << "row " << row << " was written beyond its end";
  }
}

static const llvm::fltSemantics &semanticsOf(const std::string &element) {
  return element == "bf16"  ? llvm::APFloat::BFloat()
         : element == "f16" ? llvm::APFloat::IEEEhalf()
                            : llvm::APFloat::IEEEsingle();
}

static llvm::APFloat convert(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number;
}

static double decode(const char *from, const std::string &element) {
  const int64_t size = element == "f32" ? 4 : 2;
  uint64_t bits = 0;
  std::memcpy(&bits, from, size);
  return llvm::APFloat(semanticsOf(element), llvm::APInt(8 * size, bits)).convertToDouble();
}

constexpr int64_t groupSize = TENON_CACHE_GROUP;

Cache::Cache(const std::string &element, const Batch &batch, int64_t heads, int64_t dim)
    : element(element), batch(batch), heads(heads), dim(dim), size(element == "f32"  ? 4
                                                                   : element == "i8" ? 1
                                                                                     : 2) {
  bytes.resize(batch.blocks() * 2 * heads * (scaleBytes() + TENON_BLOCK_TOKENS * dim * size));
  // Two elements of i8 are as good as a scale.
  const std::string filling = element == "i8" ? "bf16" : element;
  const int64_t step = element == "f32" ? 4 : 2;
  std::vector<float> values = randomFloats(int64_t(bytes.size()) / step, 99);
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = convert(values[i], semanticsOf(filling)).bitcastToAPInt().getZExtValue();
    std::memcpy(&bytes[i * step], &bits, step);
  }
}

int64_t Cache::scaleBytes() const {
  return element == "i8" ? (dim + groupSize - 1) / groupSize * TENON_BLOCK_TOKENS * 2 : 0;
}

const char *Cache::blockOf(int half, int32_t sequence, int32_t position, int64_t head) const {
  int64_t block = (half * heads + head) * batch.blocks() + batch.blockOf(sequence, position);
  return &bytes.at(block * (scaleBytes() + TENON_BLOCK_TOKENS * dim * size));
}

double Cache::at(int half, int32_t sequence, int32_t position, int64_t head, int64_t d) const {
  const char *block = blockOf(half, sequence, position, head);
  const int64_t slot = position % TENON_BLOCK_TOKENS;
  if (element != "i8")
    return decode(block + (slot * dim + d) * size, element);
  // Keys lie by element.
  const int64_t index = half == 0 ? d * TENON_BLOCK_TOKENS + slot : slot * dim + d;
  return int8_t(block[scaleBytes() + index]) *
         decode(block + (d / groupSize * TENON_BLOCK_TOKENS + slot) * 2, "bf16");
}

double Cache::stored(Rows &rows, int64_t row, int64_t head, int64_t d) const {
  const float value = rows.at(row, head * dim + d);
  if (element != "i8")
    return convert(value, semanticsOf(element)).convertToDouble();
  float largest = 0;
  const int64_t first = d / groupSize * groupSize;
  for (int64_t i = first; i < std::min(first + groupSize, dim); ++i)
    largest = std::max(largest, std::fabs(rows.at(row, head * dim + i)));
  const auto scale = float(convert(largest * (1.0f / 127), semanticsOf("bf16")).convertToDouble());
  return scale ? std::nearbyint(value * (1 / scale)) * scale : 0;
}

std::string Cache::type() const {
  std::string row = std::to_string(heads) + "x" + std::to_string(dim) + "x" + element;
  return "!llm.cache<2 x [k: " + row + ", v: " + row + "]>";
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

llvm::Expected<Jit> Jit::compile(const std::string &source, std::vector<unsigned> scored) {
  mlir::DialectRegistry registry;
  registerReferenceDialects(registry);
  mlir::MLIRContext mlirContext(registry);
  mlir::OwningOpRef<mlir::ModuleOp> parsed =
      mlir::parseSourceString<mlir::ModuleOp>(source, &mlirContext);
  if (!parsed)
    return llvm::createStringError("the test's kernel does not parse");
  std::vector<KernelToLower> kernels;
  for (auto op : parsed->getOps<sched::KernelOp>()) {
    KernelToLower kernel{op, {}};
    kernel.spaces.resize(op.getType().getNumInputs() - 1 + op.getType().getNumResults(),
                         sched::Space::tokens);
    for (unsigned index : scored)
      kernel.spaces[index] = sched::Space::scored;
    kernels.push_back(kernel);
  }

  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::Expected<std::unique_ptr<llvm::Module>> module = lowerKernels(kernels, *context);
  if (!module)
    return module.takeError();

  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::orc::JITTargetMachineBuilder host =
      cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  std::unique_ptr<llvm::TargetMachine> machine = cantFail(host.createTargetMachine());
  (*module)->setDataLayout(machine->createDataLayout());
  (*module)->setTargetTriple(machine->getTargetTriple());
  optimise(**module, *machine);

  Jit result;
  result.jit = cantFail(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(host).create());
  result.jit->getMainJITDylib().addGenerator(
      cantFail(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          result.jit->getDataLayout().getGlobalPrefix())));
  cantFail(
      result.jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(*module), std::move(context))));
  return result;
}

Jit::Jit(const std::string &source, std::vector<unsigned> scored)
    : Jit(cantFail(compile(source, std::move(scored)))) {}
Jit::Jit(Jit &&) = default;
Jit::~Jit() = default;

tenon_kernel *Jit::lookup(const std::string &name) {
  return cantFail(jit->lookup(name)).toPtr<tenon_kernel *>();
}

void Jit::run(const Batch &batch, const std::vector<Operand> &operands, int32_t thread) {
  std::vector<void *> io;
  std::vector<int64_t> strides;
  for (const Operand &operand : operands) {
    io.push_back(operand.data);
    if (operand.stride)
      strides.push_back(operand.stride);
  }
  tenon_env env = {&batch.get(),   nullptr, nullptr, thread, thread + 1,
                   batch.blocks(), nullptr, nullptr, 0,      0};
  lookup("k")(strides.data(), io.data(), &env);
}

} // namespace tenon::test

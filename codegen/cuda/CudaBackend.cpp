// See CudaBackend.h.
//
//   sched.program ─DeviceProgram─▶ launches ───────────────────────▶ tables ─┐
//                          │                                                 ├─▶ tenon_device_code
//                          └─▶ kernels ─DeviceSource─▶ text ─DeviceImage─▶ cubin
#include "codegen/cuda/CudaBackend.h"
#include "codegen/ConstantFields.h"
#include "codegen/cuda/DeviceImage.h"
#include "codegen/cuda/DeviceProgram.h"
#include "codegen/cuda/DeviceSource.h"

using namespace mlir;

namespace tenon::cuda {

void CudaBackend::configure(PipelineOptions &options) const {
  options.pack = true;
  options.keepRows = true;
}

namespace {

// tenon_device_code, field by field as in runtime/kernel_abi.h.
class Tables {
public:
  Tables(llvm::Module &object, const DeviceProgram &program, ArrayRef<DeviceImage> images)
      : object(object), program(program), images(images) {}

  llvm::Constant *make() {
    SmallVector<llvm::Constant *> imageTable, kernelTable;
    for (const DeviceImage &image : images)
      imageTable.push_back(makeImage(image));
    for (const DeviceKernel &kernel : program.getKernels())
      kernelTable.push_back(makeKernel(kernel));
    llvm::Constant *code = Fields(object)
                               .i64(imageTable.size())
                               .add(makeTable(object, imageTable))
                               .i64(kernelTable.size())
                               .add(makeTable(object, kernelTable))
                               .add(makeLaunches("prefill"))
                               .add(makeLaunches("decode"))
                               .add(makeLaunches("encode"))
                               .add(makeLaunches("sample"))
                               .add(declareRuntime())
                               .make();
    assert(object.getDataLayout().getTypeAllocSize(code->getType()) == sizeof(tenon_device_code));
    return makeTable(object, code);
  }

private:
  llvm::Constant *makeImage(const DeviceImage &image) {
    llvm::Constant *bytes =
        llvm::ConstantDataArray::getString(object.getContext(), image.bytes, /*AddNull=*/true);
    auto *data = new llvm::GlobalVariable(object, bytes->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, bytes);
    data->setAlignment(llvm::Align(64));
    return Fields(object)
        .text(image.architecture.name)
        .i32(image.architecture.kind)
        .i32(image.architecture.capability)
        .add(data)
        .i64(image.bytes.size())
        .make();
  }

  llvm::Constant *makeKernel(const DeviceKernel &kernel) {
    const tenon_grid &grid = kernel.launch;
    llvm::Constant *made = Fields(object)
                               .i32(grid.threads)
                               .i32(grid.columns)
                               .i32(grid.rows_per_block)
                               .i32(grid.rows)
                               .i32(grid.least_rows)
                               .i32(grid.most_rows)
                               .i32(grid.library_rows)
                               .i32(grid.for_library)
                               .i64(grid.shared_bytes)
                               .i64(grid.workspace_bytes)
                               .i64(grid.workspace_row_bytes)
                               .make();
    const tenon_product &product = kernel.launch.product;
    llvm::Constant *multiplied = Fields(object)
                                     .i32(product.dtype)
                                     .i32(product.weight)
                                     .i32(product.add)
                                     .i32(product.out)
                                     .i64(product.cols)
                                     .i64(product.depth)
                                     .i64(product.add_stride)
                                     .i64(product.out_stride)
                                     .make();
    return Fields(object).text(kernel.symbol).add(made).add(multiplied).make();
  }

  llvm::Constant *makeLaunches(StringRef phase) {
    SmallVector<llvm::Constant *> list;
    for (const DeviceLaunch &launch : program.getLaunches(phase)) {
      SmallVector<llvm::Constant *> operands;
      for (const tenon_operand &operand : launch.operands)
        operands.push_back(
            Fields(object).i64(operand.place).i64(operand.scale).i64(operand.offset).make());
      list.push_back(Fields(object)
                         .i32(launch.kernel)
                         .i32(launch.stage)
                         .i64(operands.size())
                         .add(makeTable(object, operands))
                         .make());
    }
    return Fields(object).i64(list.size()).add(makeTable(object, list)).make();
  }

  // runtime/cuda/CudaExecutor.cpp
  llvm::Constant *declareRuntime() {
    return object.getOrInsertGlobal("tenon_cuda_runtime",
                                    llvm::Type::getInt8Ty(object.getContext()));
  }

  llvm::Module &object;
  const DeviceProgram &program;
  ArrayRef<DeviceImage> images;
};

} // namespace

llvm::Expected<NativeCode> CudaBackend::compile(ModuleOp module, const TargetOptions &options) {
  llvm::Expected<std::vector<Architecture>> architectures = selectArchitectures(options.cpus);
  if (!architectures)
    return architectures.takeError();
  llvm::Expected<DeviceProgram> program = DeviceProgram::build(module);
  if (!program)
    return program.takeError();
  std::string source = writeSource(*program);
  NativeCode native(options.form);
  if (options.form == CodeForm::text) {
    native.add(std::move(source));
    return native;
  }
  llvm::Expected<std::vector<DeviceImage>> images = compileImages(source, *architectures, options);
  if (!images)
    return images.takeError();
  std::vector<std::string> names;
  for (const DeviceImage &image : *images)
    names.push_back(image.architecture.name);
  if (llvm::Error error =
          native.addDeviceDescriptor(module, getName(), names, [&](llvm::Module &object) {
            return Tables(object, *program, *images).make();
          }))
    return error;
  return native;
}

} // namespace tenon::cuda

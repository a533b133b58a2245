// See Modules.h.
#include "tools/Modules.h"
#include "codegen/Error.h"
#include "ir/LLM.h"
#include "ir/Sched.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Parser/Parser.h"
#include "runtime/artefact.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace mlir;

namespace tenon {

static std::optional<tenon_trailer> readTrailer(StringRef bytes) {
  tenon_trailer trailer;
  if (bytes.size() < sizeof trailer)
    return std::nullopt;
  std::memcpy(&trailer, bytes.end() - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, TENON_ARTEFACT_MAGIC, sizeof trailer.magic) != 0)
    return std::nullopt;
  return trailer;
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> open(StringRef path) {
  // Mapped, so that an executable's weights are never read.
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return refused("cannot read " + path + ": " + buffer.getError().message());
  return std::move(*buffer);
}

static llvm::Expected<StringRef> findSection(StringRef path, StringRef bytes, StringRef name) {
  std::optional<tenon_trailer> trailer = readTrailer(bytes);
  if (!trailer)
    return refused(path + ": neither a .mlir file nor an executable of tenon compile");
  if (trailer->version != TENON_ARTEFACT_VERSION || trailer->file_bytes != bytes.size() ||
      trailer->table_offset > bytes.size() ||
      trailer->sections > (bytes.size() - trailer->table_offset) / sizeof(tenon_section))
    return refused(path + ": is truncated, or made by another version of Tenon");
  for (uint32_t i = 0; i < trailer->sections; ++i) {
    tenon_section section;
    std::memcpy(&section, bytes.data() + trailer->table_offset + i * sizeof section,
                sizeof section);
    StringRef sectionName(section.name, strnlen(section.name, sizeof section.name));
    if (sectionName != name)
      continue;
    if (section.offset > bytes.size() || section.bytes > bytes.size() - section.offset)
      return refused(path + ": section '" + name + "' lies outside the file");
    return bytes.substr(section.offset, section.bytes);
  }
  return refused(path + ": has no section '" + name + "'");
}

bool holdsIR(StringRef path) {
  if (path.ends_with(".mlir"))
    return true;
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  return buffer && readTrailer((*buffer)->getBuffer());
}

llvm::Expected<OwningOpRef<ModuleOp>> readModule(MLIRContext &context, StringRef path,
                                                 StringRef section) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = open(path);
  if (!file)
    return file.takeError();
  // The parser reads up to a zero, which does not follow a section.
  std::string text;
  if (path.ends_with(".mlir")) {
    text = (*file)->getBuffer().str();
  } else {
    llvm::Expected<StringRef> found = findSection(path, (*file)->getBuffer(), section);
    if (!found)
      return found.takeError();
    text = found->str();
  }
  context.loadDialect<llm::LLMDialect, sched::SchedDialect, func::FuncDialect,
                      memref::MemRefDialect>();
  // The first error becomes the one line that the user sees.
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty()) {
      if (auto at = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
        message = (Twine(at.getLine()) + ":" + Twine(at.getColumn()) + ": ").str();
      message += diagnostic.str();
    }
    return success();
  });
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return refused(path + ":" + message);
  return module;
}

} // namespace tenon

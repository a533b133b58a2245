// Structs of the C ABI as constants of an object.
#ifndef TENON_CODEGEN_CONSTANTFIELDS_H
#define TENON_CODEGEN_CONSTANTFIELDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tenon {

// Builds structs of the C ABI field by field.
class Fields {
public:
  explicit Fields(llvm::Module &object) : builder(object.getContext()), object(object) {}

  Fields &i32(int64_t value) { return add(builder.getInt32(value)); }
  Fields &i64(int64_t value) { return add(builder.getInt64(value)); }
  Fields &text(llvm::StringRef value) {
    llvm::Constant *bytes = llvm::ConstantDataArray::getString(object.getContext(), value);
    return add(new llvm::GlobalVariable(object, bytes->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, bytes));
  }
  Fields &add(llvm::Constant *value) {
    values.push_back(value);
    return *this;
  }
  llvm::Constant *make() { return llvm::ConstantStruct::getAnon(values); }

private:
  llvm::IRBuilder<> builder;
  llvm::Module &object;
  llvm::SmallVector<llvm::Constant *> values;
};

// An array in the object; null without entries.
inline llvm::Constant *makeTable(llvm::Module &object, llvm::ArrayRef<llvm::Constant *> entries) {
  if (entries.empty())
    return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(object.getContext()));
  llvm::Constant *table = llvm::ConstantArray::get(
      llvm::ArrayType::get(entries[0]->getType(), entries.size()), entries);
  return new llvm::GlobalVariable(object, table->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                  table);
}

} // namespace tenon

#endif // TENON_CODEGEN_CONSTANTFIELDS_H

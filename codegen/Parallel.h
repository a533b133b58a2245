// What takes long and can be done one by one, on all CPUs.
#ifndef TENON_CODEGEN_PARALLEL_H
#define TENON_CODEGEN_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon {

// make(0) .. make(count - 1) in order, on whichever thread is free; or the first error of them.
llvm::Expected<std::vector<std::string>>
makeAll(size_t count, llvm::function_ref<llvm::Expected<std::string>(size_t)> make);

} // namespace tenon

#endif // TENON_CODEGEN_PARALLEL_H

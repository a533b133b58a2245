// See Parallel.h.
#include "codegen/Parallel.h"
#include "llvm/Support/ThreadPool.h"
#include <optional>

namespace tenon {

llvm::Expected<std::vector<std::string>>
makeAll(size_t count, llvm::function_ref<llvm::Expected<std::string>(size_t)> make) {
  std::vector<std::optional<llvm::Expected<std::string>>> results(count);
  {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
    for (size_t i = 0; i < count; ++i)
      pool.async([&, i] { results[i].emplace(make(i)); });
    pool.wait();
  }
  llvm::Error first = llvm::Error::success();
  std::vector<std::string> made;
  for (std::optional<llvm::Expected<std::string>> &result : results) {
    if (*result)
      made.push_back(std::move(**result));
    else if (first)
      llvm::consumeError(result->takeError());
    else
      first = result->takeError();
  }
  if (first)
    return first;
  return made;
}

} // namespace tenon

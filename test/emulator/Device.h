// The device behind the stand-ins for libcuda.so.1 (Driver.cpp) and libcublasLt.so.13 (CublasLt.cpp):
// its queue, and what may be asked of it.
#ifndef TENON_TEST_EMULATOR_DEVICE_H
#define TENON_TEST_EMULATOR_DEVICE_H

#include "test/emulator/Machine.h"
#include "test/emulator/Memory.h"
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::emulator {

// Results, as the driver's interface numbers them.
#define RESULTS(X)                                                                                 \
  X(SUCCESS, 0)                                                                                    \
  X(ERROR_INVALID_VALUE, 1)                                                                        \
  X(ERROR_OUT_OF_MEMORY, 2)                                                                        \
  X(ERROR_NOT_INITIALIZED, 3)                                                                      \
  X(ERROR_NO_DEVICE, 100)                                                                          \
  X(ERROR_INVALID_DEVICE, 101)                                                                     \
  X(ERROR_INVALID_IMAGE, 200)                                                                      \
  X(ERROR_INVALID_CONTEXT, 201)                                                                    \
  X(ERROR_NOT_FOUND, 500)                                                                          \
  X(ERROR_NOT_READY, 600)                                                                          \
  X(ERROR_LAUNCH_FAILED, 719)                                                                      \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                         \
  X(ERROR_STREAM_CAPTURE_UNMATCHED, 903)
enum Result {
#define DECLARE(name, number) name = number,
  RESULTS(DECLARE)
#undef DECLARE
};

// Something that a stream does in its turn. False: it could not, and `text` says why.
using Action = std::function<bool()>;

struct Stream {
  bool captures = false;
  std::vector<Action> captured;
};

// All streams together: what is queued on one happens in the order in which it was asked for.
struct Device {
  std::recursive_mutex mutex;
  bool isInitialised = false;
  int retained = 0;
  std::vector<Action> queue;
  std::map<const char *, size_t> pinned;
  bool isBroken = false; // a kernel failed; nothing can be done behind it
  std::string text;      // of the last error

  int refuse(Result result, std::string why) {
    text = std::move(why);
    return result;
  }

  // Does what was queued. Kernels may touch device memory, the host may not.
  int drain() {
    if (!queue.empty() && !isBroken) {
      std::vector<Action> actions = std::move(queue);
      DeviceMemory::get().protect(false);
      for (const Action &action : actions)
        if (!action()) {
          isBroken = true;
          break;
        }
      DeviceMemory::get().protect(true);
    }
    queue.clear();
    return isBroken ? ERROR_LAUNCH_FAILED : SUCCESS;
  }

  int enqueue(Stream *stream, Action action) {
    (stream->captures ? stream->captured : queue).push_back(std::move(action));
    return isBroken ? ERROR_LAUNCH_FAILED : SUCCESS;
  }

  bool isPinned(const void *p) const {
    auto *byte = static_cast<const char *>(p);
    auto next = pinned.upper_bound(byte);
    return next != pinned.begin() && byte < std::prev(next)->first + std::prev(next)->second;
  }
};

Device &device();

inline bool isAllocated(const char *p, size_t bytes) {
  const GuardedBytes *block = DeviceMemory::get().find(p);
  return block && p >= block->begin() && bytes <= size_t(block->end() - p);
}

} // namespace tenon::emulator

// A function that an executable finds.
#define EXPORT extern "C" __attribute__((visibility("default"))) int

#endif // TENON_TEST_EMULATOR_DEVICE_H

// A stand-in for libcuda.so.1 over the emulator: the functions of the driver that Tenon's runtime
// calls. TENON_CUDA_DRIVER names it to an executable. A module's image is a shared object of the
// host, made from the text that NVRTC would get.
//
//   TENON_EMULATED_DEVICES     how many there are (1)
//   TENON_EMULATED_VERSION     of the driver (13000)
//   TENON_EMULATED_CAPABILITY  90: sm_90
//   TENON_EMULATED_MEMORY      bytes that may be allocated (4 GiB)
//
// Streams have nothing to wait for: everything happens when it is asked for, except what is asked
// between cuStreamBeginCapture and cuStreamEndCapture, which a graph does whenever it is launched.
#include "runtime/kernel_abi.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Memory.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <sys/mman.h>
#include <unistd.h>

using namespace tenon::emulator;

namespace {

enum Result {
  Done = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  NotFound = 500,
  LaunchFailed = 719,
  CaptureInvalid = 901,
};

std::string fault; // what stopped a kernel; nothing can be done behind it

int64_t setting(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}
int64_t deviceCount() { return setting("TENON_EMULATED_DEVICES", 1); }
int64_t memoryBytes() { return setting("TENON_EMULATED_MEMORY", int64_t(4) << 30); }

using Action = std::function<int()>;
struct Stream {
  bool captures = false;
  std::vector<Action> captured;
};
struct Graph {
  std::vector<Action> actions;
};
struct Event {
  std::chrono::steady_clock::time_point time;
};
struct Module {
  void *library;
};
// A kernel of a module; its parameter is one struct.
struct Function {
  std::string name;
  Entry entry;
};

// What is known of a kernel's parameters: their size, that of tenon_arguments.
constexpr size_t parameterBytes = sizeof(tenon_arguments);

int perform(Stream *stream, Action action) {
  if (!fault.empty())
    return LaunchFailed;
  if (!stream->captures)
    return action();
  stream->captured.push_back(std::move(action));
  return Done;
}

int copy(Stream *stream, void *to, const void *from, size_t bytes) {
  return perform(stream, [=] {
    DeviceMemory::get().protect(false);
    std::memcpy(to, from, bytes);
    return int(Done);
  });
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) int

EXPORT cuInit(unsigned) { return deviceCount() > 0 ? Done : NoDevice; }
EXPORT cuDriverGetVersion(int *version) {
  *version = int(setting("TENON_EMULATED_VERSION", 13000));
  return Done;
}
EXPORT cuDeviceGetCount(int *count) {
  *count = int(deviceCount());
  return Done;
}
EXPORT cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < deviceCount() ? Done : InvalidDevice;
}
EXPORT cuDeviceGetName(char *name, int length, int) {
  std::strncpy(name, "Tenon's emulator", size_t(length));
  return Done;
}
EXPORT cuDeviceGetAttribute(int *value, int attribute, int) {
  const int64_t capability = setting("TENON_EMULATED_CAPABILITY", 90);
  switch (attribute) {
  case 16: // processors
    *value = 132;
    return Done;
  case 75:
    *value = int(capability / 10);
    return Done;
  case 76:
    *value = int(capability % 10);
    return Done;
  default:
    return InvalidValue;
  }
}
EXPORT cuDevicePrimaryCtxRetain(void **context, int) {
  static int only;
  *context = &only;
  return Done;
}
EXPORT cuDevicePrimaryCtxRelease_v2(int) { return Done; }
EXPORT cuCtxSetCurrent(void *) { return Done; }

EXPORT cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = size_t(memoryBytes());
  *free = *total - DeviceMemory::get().used();
  return Done;
}
EXPORT cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (bytes == 0)
    return InvalidValue;
  if (DeviceMemory::get().used() + bytes > size_t(memoryBytes()))
    return OutOfMemory;
  *address = reinterpret_cast<uint64_t>(DeviceMemory::get().allocate(bytes));
  return Done;
}
EXPORT cuMemFree_v2(uint64_t address) {
  return DeviceMemory::get().free(reinterpret_cast<void *>(address)) ? Done : InvalidValue;
}
EXPORT cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory ? Done : OutOfMemory;
}
EXPORT cuMemFreeHost(void *memory) {
  std::free(memory);
  return Done;
}
EXPORT cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  return copy(stream, reinterpret_cast<void *>(to), from, bytes);
}
EXPORT cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  return copy(stream, to, reinterpret_cast<const void *>(from), bytes);
}
EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  return copy(stream, reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
}

EXPORT cuStreamCreate(Stream **stream, unsigned) {
  *stream = new Stream;
  return Done;
}
EXPORT cuStreamDestroy_v2(Stream *stream) {
  delete stream;
  return Done;
}
EXPORT cuStreamSynchronize(Stream *stream) {
  return stream->captures ? CaptureInvalid : fault.empty() ? Done : LaunchFailed;
}
EXPORT cuStreamBeginCapture_v2(Stream *stream, int) {
  if (stream->captures)
    return CaptureInvalid;
  stream->captures = true;
  stream->captured.clear();
  return Done;
}
EXPORT cuStreamEndCapture(Stream *stream, Graph **graph) {
  if (!stream->captures)
    return CaptureInvalid;
  stream->captures = false;
  *graph = new Graph{std::move(stream->captured)};
  return Done;
}
EXPORT cuGraphInstantiateWithFlags(Graph **exec, Graph *graph, unsigned long long) {
  *exec = new Graph(*graph);
  return Done;
}
EXPORT cuGraphLaunch(Graph *exec, Stream *stream) {
  return perform(stream, [exec] {
    for (const Action &action : exec->actions)
      if (int result = action())
        return result;
    return int(Done);
  });
}
EXPORT cuGraphExecDestroy(Graph *exec) {
  delete exec;
  return Done;
}
EXPORT cuGraphDestroy(Graph *graph) {
  delete graph;
  return Done;
}

EXPORT cuEventCreate(Event **event, unsigned) {
  *event = new Event;
  return Done;
}
EXPORT cuEventRecord(Event *event, Stream *stream) {
  return perform(stream, [event] {
    event->time = std::chrono::steady_clock::now();
    return int(Done);
  });
}
EXPORT cuEventElapsedTime(float *milliseconds, Event *begin, Event *end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return Done;
}
EXPORT cuEventDestroy_v2(Event *event) {
  delete event;
  return Done;
}

// The image ends with its section headers.
EXPORT cuModuleLoadData(Module **module, const void *image) {
  const auto *header = static_cast<const Elf64_Ehdr *>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_X86_64)
    return InvalidImage;
  const size_t bytes = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
  // The image calls the emulator, which is in this library: others must see what it defines.
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&cuInit), &self))
    dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  const int file = memfd_create("kernels", MFD_CLOEXEC);
  void *library = nullptr;
  if (file >= 0 && write(file, image, bytes) == ssize_t(bytes))
    library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fault = dlerror() ? "the image cannot be loaded" : "the image cannot be written";
  close(file);
  if (!library)
    return InvalidImage;
  *module = new Module{library};
  return Done;
}
EXPORT cuModuleUnload(Module *module) {
  dlclose(module->library);
  delete module;
  return Done;
}
EXPORT cuModuleGetFunction(Function **function, Module *module, const char *name) {
  void *entry = dlsym(module->library, name);
  if (!entry)
    return NotFound;
  *function = new Function{name, reinterpret_cast<Entry>(entry)};
  return Done;
}
EXPORT cuFuncSetAttribute(Function *, int attribute, int value) {
  return attribute == 8 && value > 227 << 10 ? InvalidValue : Done; // shared memory of sm_90
}
EXPORT cuLaunchKernel(Function *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      Stream *stream, void **parameters, void **) {
  if (gridX == 0 || gridY == 0 || gridY > 65535 || gridZ != 1 || blockX == 0 || blockX > 1024 ||
      blockY != 1 || blockZ != 1)
    return InvalidValue;
  // Copied now, as the driver does.
  std::vector<char> copied(parameterBytes);
  std::memcpy(copied.data(), parameters[0], parameterBytes);
  return perform(stream, [=] {
    Grid grid = {function->name.c_str(), gridX, gridY, int32_t(blockX), int64_t(sharedBytes)};
    fault = run(grid, function->entry, copied.data());
    return fault.empty() ? Done : LaunchFailed;
  });
}

EXPORT cuGetErrorName(int result, const char **name) {
  *name = result == Done           ? "CUDA_SUCCESS"
          : result == OutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == NoDevice     ? "CUDA_ERROR_NO_DEVICE"
          : result == InvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
          : result == NotFound     ? "CUDA_ERROR_NOT_FOUND"
          : result == LaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                   : "CUDA_ERROR_INVALID_VALUE";
  return Done;
}
EXPORT cuGetErrorString(int result, const char **text) {
  *text = !fault.empty() && (result == LaunchFailed || result == InvalidImage) ? fault.c_str()
                                                                               : "emulated failure";
  return Done;
}

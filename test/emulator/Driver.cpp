// A stand-in for libcuda.so.1 over the emulator: the functions of the driver that Tenon's runtime
// calls. TENON_CUDA_DRIVER names it to an executable. A module's image is a shared object of the
// host, made from the text that NVRTC would get.
//
//   TENON_EMULATED_DEVICES     how many there are (1)
//   TENON_EMULATED_VERSION     of the driver (13000)
//   TENON_EMULATED_CAPABILITY  90: sm_90
//   TENON_EMULATED_MEMORY      bytes that may be allocated (4 GiB)
//   TENON_EMULATED_LOG         set: a line for each launch that begins early, on stderr
//
// It is as unforgiving as a device can be: what is queued happens when somebody waits for it and
// not before, a pinned buffer that a copy fills holds 0xff until then, and the host that touches
// device memory dies with a line that says so.
#include "runtime/kernel_abi.h"
#include "test/emulator/Device.h"
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

using namespace tenon::emulator;

Device &tenon::emulator::device() {
  static Device device;
  return device;
}

namespace {

struct Graph {
  std::vector<Action> actions;
};
struct Event {
  bool happened = false;
  std::chrono::steady_clock::time_point time;
};
// A kernel of a module; its parameter is one struct.
struct Function {
  std::string name;
  Entry entry;
  int32_t threads;                // for which it was compiled
  int64_t sharedBytes = 48 << 10; // that it may have
};
// How a kernel is launched, as the driver's interface has it.
struct LaunchAttribute {
  int id, padding, value; // 6: whether it may begin before what precedes is done
  char unused[60];
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream *stream;
  const LaunchAttribute *attributes;
  unsigned count;
};
struct Module {
  int file;
  void *library;
  std::vector<std::unique_ptr<Function>> functions; // that were asked for
};

int64_t setting(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}
int64_t deviceCount() { return setting("TENON_EMULATED_DEVICES", 1); }
int64_t memoryBytes() { return setting("TENON_EMULATED_MEMORY", int64_t(4) << 30); }
int64_t driverVersion() { return setting("TENON_EMULATED_VERSION", 13000); }
int64_t capability() { return setting("TENON_EMULATED_CAPABILITY", 90); }
int64_t sharedBytesOfABlock() {
  int64_t sm = capability();
  return (sm == 80 || sm == 87 ? 163 : sm == 86 || sm == 89 || sm >= 120 ? 99 : 227) << 10;
}

thread_local bool hasContext = false;

// A kernel's parameters. They lie in this library, where instrumented kernels may read: all else
// that they touch has to be the device's.
tenon_arguments parametersOfKernel;

// Bytes from and to where `copies` finds them when it is done.
int copy(Stream *stream, char *to, bool toDevice, const char *from, bool fromDevice, size_t bytes) {
  Device &d = device();
  for (auto [p, onDevice] :
       {std::pair{static_cast<const char *>(to), toDevice}, {from, fromDevice}})
    if (onDevice && !isAllocated(p, bytes))
      return d.refuse(ERROR_INVALID_VALUE, "a copy of " + std::to_string(bytes) + " bytes " +
                                               Machine::get().describe(p));
  auto move = [=] {
    std::memmove(to, from, bytes);
    return true;
  };
  // Memory that is not pinned is read before the call returns, and written before it returns.
  if (!fromDevice && !d.isPinned(from) && !stream->captures) {
    std::string copied(from, bytes);
    return d.enqueue(stream, [=] {
      std::memcpy(to, copied.data(), bytes);
      return true;
    });
  }
  if (!toDevice && !d.isPinned(to)) {
    if (stream->captures)
      return d.refuse(ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph cannot copy to pageable memory");
    d.enqueue(stream, move);
    return d.drain();
  }
  if (!toDevice && !stream->captures)
    std::memset(to, 0xff, bytes);
  return d.enqueue(stream, move);
}

// The host touches what is the device's.
struct sigaction before;
void explainCrash(int signal, siginfo_t *info, void *context) {
  sigaction(signal, &before, nullptr);
  if (DeviceMemory::get().find(info->si_addr))
    std::fprintf(stderr, "emulated CUDA: the host touches device memory, %s\n",
                 Machine::get().describe(info->si_addr).c_str());
  (void)context; // behind this it happens again
}

// What every function but a few begins with.
#define ENTER                                                                                      \
  Device &d = device();                                                                            \
  std::lock_guard<std::recursive_mutex> lock(d.mutex);                                             \
  if (!d.isInitialised)                                                                            \
  return d.refuse(ERROR_NOT_INITIALIZED, "cuInit was not called")
#define ENTER_CONTEXT                                                                              \
  ENTER;                                                                                           \
  if (!hasContext)                                                                                 \
  return d.refuse(ERROR_INVALID_CONTEXT, "this thread has no context")

} // namespace

// ── devices ────────────────────────────────────────────────────────────────────────────────────

EXPORT cuInit(unsigned) {
  Device &d = device();
  std::lock_guard<std::recursive_mutex> lock(d.mutex);
  if (deviceCount() <= 0)
    return d.refuse(ERROR_NO_DEVICE, "no CUDA-capable device is detected");
  if (!d.isInitialised) {
    struct sigaction action = {};
    action.sa_sigaction = explainCrash;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
  }
  d.isInitialised = true;
  return SUCCESS;
}
EXPORT cuDriverGetVersion(int *version) {
  *version = int(driverVersion());
  return SUCCESS;
}
EXPORT cuDeviceGetCount(int *count) {
  ENTER;
  *count = int(deviceCount());
  return SUCCESS;
}
EXPORT cuDeviceGet(int *number, int ordinal) {
  ENTER;
  if (ordinal < 0 || ordinal >= deviceCount())
    return d.refuse(ERROR_INVALID_DEVICE, "there is no such device");
  *number = ordinal;
  return SUCCESS;
}
EXPORT cuDeviceGetName(char *name, int length, int) {
  ENTER;
  std::snprintf(name, size_t(length), "Tenon's emulator");
  return SUCCESS;
}
EXPORT cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER;
  switch (attribute) {
  case 16: // multiprocessors
    *value = 132;
    return SUCCESS;
  case 75:
    *value = int(capability() / 10);
    return SUCCESS;
  case 76:
    *value = int(capability() % 10);
    return SUCCESS;
  case 97: // shared memory that a block may ask for
    *value = int(sharedBytesOfABlock());
    return SUCCESS;
  default:
    return d.refuse(ERROR_INVALID_VALUE, "the emulator does not know that attribute");
  }
}
EXPORT cuDevicePrimaryCtxRetain(void **context, int) {
  ENTER;
  ++d.retained;
  *context = &d;
  return SUCCESS;
}
EXPORT cuDevicePrimaryCtxRelease_v2(int) {
  ENTER;
  if (d.retained == 0)
    return d.refuse(ERROR_INVALID_CONTEXT, "the context is released more often than retained");
  --d.retained;
  return d.drain();
}
EXPORT cuCtxSetCurrent(void *context) {
  ENTER;
  hasContext = context != nullptr;
  return SUCCESS;
}

// ── memory ─────────────────────────────────────────────────────────────────────────────────────

EXPORT cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER_CONTEXT;
  *total = size_t(memoryBytes());
  *free = *total - std::min(*total, DeviceMemory::get().used());
  return SUCCESS;
}
EXPORT cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER_CONTEXT;
  if (bytes == 0)
    return d.refuse(ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  if (DeviceMemory::get().used() + bytes > size_t(memoryBytes()))
    return d.refuse(ERROR_OUT_OF_MEMORY, "out of memory");
  *address = reinterpret_cast<uint64_t>(DeviceMemory::get().allocate(bytes));
  DeviceMemory::get().protect(true);
  return SUCCESS;
}
EXPORT cuMemFree_v2(uint64_t address) {
  ENTER_CONTEXT;
  int result = d.drain();
  if (!DeviceMemory::get().free(reinterpret_cast<void *>(address)))
    return d.refuse(ERROR_INVALID_VALUE, "no allocation begins there");
  return result;
}
EXPORT cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  ENTER_CONTEXT;
  *memory = std::malloc(bytes);
  if (!*memory)
    return d.refuse(ERROR_OUT_OF_MEMORY, "out of memory");
  d.pinned[static_cast<char *>(*memory)] = bytes;
  return SUCCESS;
}
EXPORT cuMemFreeHost(void *memory) {
  ENTER_CONTEXT;
  int result = d.drain();
  if (!d.pinned.erase(static_cast<char *>(memory)))
    return d.refuse(ERROR_INVALID_VALUE, "no pinned memory begins there");
  std::free(memory);
  return result;
}
EXPORT cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  ENTER_CONTEXT;
  return copy(stream, reinterpret_cast<char *>(to), true, static_cast<const char *>(from), false,
              bytes);
}
EXPORT cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  ENTER_CONTEXT;
  return copy(stream, static_cast<char *>(to), false, reinterpret_cast<const char *>(from), true,
              bytes);
}
EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  ENTER_CONTEXT;
  return copy(stream, reinterpret_cast<char *>(to), true, reinterpret_cast<const char *>(from),
              true, bytes);
}

// ── streams, graphs, events ────────────────────────────────────────────────────────────────────

EXPORT cuStreamCreate(Stream **stream, unsigned) {
  ENTER_CONTEXT;
  *stream = new Stream;
  return SUCCESS;
}
EXPORT cuStreamDestroy_v2(Stream *stream) {
  ENTER_CONTEXT;
  int result = d.drain();
  delete stream;
  return result;
}
EXPORT cuStreamSynchronize(Stream *stream) {
  ENTER_CONTEXT;
  if (stream->captures)
    return d.refuse(ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream that records cannot be waited for");
  return d.drain();
}
EXPORT cuStreamBeginCapture_v2(Stream *stream, int) {
  ENTER_CONTEXT;
  if (stream->captures)
    return d.refuse(ERROR_STREAM_CAPTURE_UNMATCHED, "the stream records already");
  stream->captures = true;
  return SUCCESS;
}
EXPORT cuStreamEndCapture(Stream *stream, Graph **graph) {
  ENTER_CONTEXT;
  if (!stream->captures)
    return d.refuse(ERROR_STREAM_CAPTURE_UNMATCHED, "the stream does not record");
  stream->captures = false;
  *graph = new Graph{std::move(stream->captured)};
  stream->captured.clear();
  return SUCCESS;
}
EXPORT cuGraphInstantiateWithFlags(Graph **exec, Graph *graph, unsigned long long) {
  ENTER_CONTEXT;
  *exec = new Graph(*graph);
  return SUCCESS;
}
EXPORT cuGraphLaunch(Graph *exec, Stream *stream) {
  ENTER_CONTEXT;
  int result = SUCCESS;
  for (const Action &action : exec->actions)
    result = d.enqueue(stream, action);
  return result;
}
EXPORT cuGraphExecDestroy(Graph *exec) {
  ENTER_CONTEXT;
  delete exec;
  return SUCCESS;
}
EXPORT cuGraphDestroy(Graph *graph) {
  ENTER_CONTEXT;
  delete graph;
  return SUCCESS;
}

EXPORT cuEventCreate(Event **event, unsigned) {
  ENTER_CONTEXT;
  *event = new Event;
  return SUCCESS;
}
EXPORT cuEventRecord(Event *event, Stream *stream) {
  ENTER_CONTEXT;
  event->happened = false;
  return d.enqueue(stream, [event] {
    event->happened = true;
    event->time = std::chrono::steady_clock::now();
    return true;
  });
}
EXPORT cuEventElapsedTime(float *milliseconds, Event *begin, Event *end) {
  ENTER_CONTEXT;
  if (!begin->happened || !end->happened)
    return d.refuse(ERROR_NOT_READY, "an event has not happened yet");
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return SUCCESS;
}
EXPORT cuEventDestroy_v2(Event *event) {
  ENTER_CONTEXT;
  int result = d.drain();
  delete event;
  return result;
}

// ── kernels ────────────────────────────────────────────────────────────────────────────────────

EXPORT cuModuleLoadData(Module **module, const void *image) {
  ENTER_CONTEXT;
  const auto *header = static_cast<const Elf64_Ehdr *>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_X86_64)
    return d.refuse(ERROR_INVALID_IMAGE, "the image is none of the emulator's");
  // It ends with its section headers.
  const size_t bytes = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
  // The image calls the emulator, which is in this library: others must see what it defines.
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&cuInit), &self))
    dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  // The file stays open with the module: a second one of that name would be taken for it.
  const int file = memfd_create("kernels", MFD_CLOEXEC);
  void *library = nullptr;
  if (file >= 0 && write(file, image, bytes) == ssize_t(bytes))
    library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    close(file);
    return d.refuse(ERROR_INVALID_IMAGE, why ? why : "the image cannot be written");
  }
  *module = new Module{file, library, {}};
  return SUCCESS;
}
EXPORT cuModuleUnload(Module *module) {
  ENTER_CONTEXT;
  int result = d.drain();
  dlclose(module->library);
  close(module->file);
  delete module;
  return result;
}
EXPORT cuModuleGetFunction(Function **function, Module *module, const char *name) {
  ENTER_CONTEXT;
  void *entry = dlsym(module->library, name);
  auto *threads = static_cast<const int32_t *>(
      dlsym(module->library, (name + std::string("_threads")).c_str()));
  if (!entry || !threads)
    return d.refuse(ERROR_NOT_FOUND, "the module has no kernel " + std::string(name));
  module->functions.push_back(
      std::make_unique<Function>(Function{name, reinterpret_cast<Entry>(entry), *threads}));
  *function = module->functions.back().get();
  return SUCCESS;
}
EXPORT cuFuncSetAttribute(Function *function, int attribute, int value) {
  ENTER_CONTEXT;
  if (attribute != 8 || value < 0 || value > sharedBytesOfABlock())
    return d.refuse(ERROR_INVALID_VALUE, function->name + ": a block has at most " +
                                             std::to_string(sharedBytesOfABlock()) +
                                             " bytes of shared memory");
  function->sharedBytes = value;
  return SUCCESS;
}
EXPORT cuLaunchKernelEx(const LaunchConfig *config, Function *function, void **parameters,
                        void **) {
  ENTER_CONTEXT;
  const auto [gridX, gridY, gridZ] = config->grid;
  const auto [blockX, blockY, blockZ] = config->block;
  const unsigned sharedBytes = config->sharedBytes;
  bool beginsEarly = false;
  for (unsigned i = 0; i < config->count; ++i) {
    if (config->attributes[i].id != 6)
      return d.refuse(ERROR_INVALID_VALUE, "the emulator does not know that attribute");
    beginsEarly = config->attributes[i].value != 0;
  }
  if (beginsEarly && capability() < 90)
    return d.refuse(ERROR_INVALID_VALUE,
                    function->name + ": devices before sm_90 begin nothing early");
  if (beginsEarly && config->stream->captures && driverVersion() < 12030)
    return d.refuse(ERROR_INVALID_VALUE, function->name + ": graphs of this driver forget that a "
                                                          "launch begins early");
  if (beginsEarly && std::getenv("TENON_EMULATED_LOG"))
    std::fprintf(stderr, "%s begins early\n", function->name.c_str());
  if (gridX == 0 || gridY == 0 || gridY > 65535 || gridZ != 1)
    return d.refuse(ERROR_INVALID_VALUE, function->name + ": no device takes that grid");
  if (blockX == 0 || blockX > unsigned(function->threads) || blockY != 1 || blockZ != 1)
    return d.refuse(ERROR_INVALID_VALUE, function->name + ": blocks have more threads than it was "
                                                          "compiled for");
  if (sharedBytes > function->sharedBytes)
    return d.refuse(ERROR_INVALID_VALUE, function->name + ": " + std::to_string(sharedBytes) +
                                             " bytes of shared memory, but it may have " +
                                             std::to_string(function->sharedBytes));
  // Parameters are copied now.
  const auto copied = *static_cast<const tenon_arguments *>(parameters[0]);
  return d.enqueue(config->stream, [=, columns = gridX, rows = gridY, threads = blockX,
                                    name = function->name, entry = function->entry] {
    Grid grid = {name.c_str(),
                 columns,
                 rows,
                 int32_t(threads),
                 int64_t(sharedBytes),
                 beginsEarly,
                 &parametersOfKernel,
                 sizeof parametersOfKernel};
    parametersOfKernel = copied;
    device().text = run(grid, entry, &parametersOfKernel);
    return device().text.empty();
  });
}

EXPORT cuGetErrorName(int result, const char **name) {
#define NAME(symbol, number)                                                                       \
  if (result == number) {                                                                          \
    *name = "CUDA_" #symbol;                                                                       \
    return SUCCESS;                                                                                \
  }
  RESULTS(NAME)
#undef NAME
  return ERROR_INVALID_VALUE;
}
EXPORT cuGetErrorString(int, const char **text) {
  *text = device().text.c_str();
  return SUCCESS;
}

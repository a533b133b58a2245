// The CUDA driver's functions, found when they are first needed: an executable starts on machines
// that have no driver, and says so in one line. Declared here by the driver's ABI, so that nothing
// of CUDA is needed to build.
#ifndef TENON_RUNTIME_CUDA_DRIVER_H
#define TENON_RUNTIME_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::rt::cuda {

using Result = int; // 0: done
using DeviceNumber = int;
using Address = char *; // in a device's memory: a number to the driver, which is passed alike
using Context = struct ContextTag *;
using Stream = struct StreamTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Graph = struct GraphTag *;
using GraphExec = struct GraphExecTag *;
using Event = struct EventTag *;

struct LaunchAttribute {
  int id, padding;
  int value;
  char unused[60];
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  const LaunchAttribute *attributes;
  unsigned attributeCount;
};

// name in this program, its symbol, parameters
#define TENON_CUDA_FUNCTIONS(X)                                                                    \
  X(init, "cuInit", (unsigned flags))                                                              \
  X(driverVersion, "cuDriverGetVersion", (int *version))                                           \
  X(deviceCount, "cuDeviceGetCount", (int *count))                                                 \
  X(device, "cuDeviceGet", (DeviceNumber * device, int ordinal))                                   \
  X(deviceName, "cuDeviceGetName", (char *name, int length, DeviceNumber device))                  \
  X(deviceAttribute, "cuDeviceGetAttribute", (int *value, int attribute, DeviceNumber device))     \
  X(retainContext, "cuDevicePrimaryCtxRetain", (Context * context, DeviceNumber device))           \
  X(releaseContext, "cuDevicePrimaryCtxRelease_v2", (DeviceNumber device))                         \
  X(setContext, "cuCtxSetCurrent", (Context context))                                              \
  X(memoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                  \
  X(allocate, "cuMemAlloc_v2", (Address * address, size_t bytes))                                  \
  X(release, "cuMemFree_v2", (Address address))                                                    \
  X(allocateHost, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))                 \
  X(releaseHost, "cuMemFreeHost", (void *memory))                                                  \
  X(copyIn, "cuMemcpyHtoDAsync_v2", (Address to, const void *from, size_t bytes, Stream stream))   \
  X(copyOut, "cuMemcpyDtoHAsync_v2", (void *to, Address from, size_t bytes, Stream stream))        \
  X(copy, "cuMemcpyDtoDAsync_v2", (Address to, Address from, size_t bytes, Stream stream))         \
  X(createStream, "cuStreamCreate", (Stream * stream, unsigned flags))                             \
  X(destroyStream, "cuStreamDestroy_v2", (Stream stream))                                          \
  X(synchronise, "cuStreamSynchronize", (Stream stream))                                           \
  X(beginCapture, "cuStreamBeginCapture_v2", (Stream stream, int mode))                            \
  X(endCapture, "cuStreamEndCapture", (Stream stream, Graph * graph))                              \
  X(instantiate, "cuGraphInstantiateWithFlags",                                                    \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                     \
  X(launchGraph, "cuGraphLaunch", (GraphExec exec, Stream stream))                                 \
  X(destroyExec, "cuGraphExecDestroy", (GraphExec exec))                                           \
  X(destroyGraph, "cuGraphDestroy", (Graph graph))                                                 \
  X(createEvent, "cuEventCreate", (Event * event, unsigned flags))                                 \
  X(record, "cuEventRecord", (Event event, Stream stream))                                         \
  X(elapsed, "cuEventElapsedTime", (float *milliseconds, Event begin, Event end))                  \
  X(destroyEvent, "cuEventDestroy_v2", (Event event))                                              \
  X(loadModule, "cuModuleLoadData", (Module * module, const void *image))                          \
  X(unloadModule, "cuModuleUnload", (Module module))                                               \
  X(getFunction, "cuModuleGetFunction", (Function * function, Module module, const char *name))    \
  X(setAttribute, "cuFuncSetAttribute", (Function function, int attribute, int value))             \
  X(launch, "cuLaunchKernelEx",                                                                    \
    (const LaunchConfig *config, Function function, void **parameters, void **extra))              \
  X(errorName, "cuGetErrorName", (Result result, const char **name))                               \
  X(errorText, "cuGetErrorString", (Result result, const char **text))

struct Driver {
#define TENON_CUDA_DECLARE(name, symbol, parameters) Result(*name) parameters = nullptr;
  TENON_CUDA_FUNCTIONS(TENON_CUDA_DECLARE)
#undef TENON_CUDA_DECLARE

  // libcuda.so.1, or the library that TENON_CUDA_DRIVER names. Throws with ExitMachine when there
  // is none, or it is too old, or finds no device.
  static const Driver &get();

  // Throws with ExitMachine unless the call was done: "CUDA: cannot `what`: ...".
  void check(Result result, const char *what) const;

  int version() const { return speaks; } // 12030: CUDA 12.3

private:
  Driver();
  int speaks = 0;
};

[[noreturn]] void refuseWithoutDevices();

// Numbers of the driver's interface.
constexpr int attributeProcessors = 16, attributeMajor = 75, attributeMinor = 76;
constexpr int functionSharedBytes = 8;
constexpr int launchBeginsEarly = 6; // programmatic stream serialisation
constexpr int relaxedCapture = 2;

} // namespace tenon::rt::cuda

#endif // TENON_RUNTIME_CUDA_DRIVER_H

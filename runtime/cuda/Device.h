// One GPU: its memory, its stream, and the kernels of an image that it runs.
#ifndef TENON_RUNTIME_CUDA_DEVICE_H
#define TENON_RUNTIME_CUDA_DEVICE_H

#include "runtime/KvPool.h"
#include "runtime/cuda/Driver.h"
#include "runtime/kernel_abi.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::rt::cuda {

struct DeviceFacts {
  std::string name;
  int capability; // 10 * major + minor
  int processors;
};

// A line for each device: "0: NVIDIA H200, sm_90, 132 processors".
std::vector<std::string> listDevices();

// Whether a launch may begin while the one before it ends: if the code waits by itself for what it
// needs (from sm_90 on), and the driver's graphs keep such launches apart from others (CUDA 12.3).
bool mayBeginEarly(const tenon_image &image, const DeviceFacts &facts, int driverVersion);

class Device {
public:
  // Throws with ExitMachine when there is no device of this number.
  explicit Device(int number);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver() const { return api; }
  const DeviceFacts &facts() const { return about; }
  Stream stream() const { return queue; }
  int64_t freeBytes() const;

  // Waits for everything that was asked of the stream.
  void wait() const { api.check(api.synchronise(queue), "finish the work of the device"); }

private:
  const Driver &api;
  DeviceNumber number = 0;
  DeviceFacts about;
  Stream queue = nullptr;
};

// Memory of the device.
class DeviceMemory : public KvMemory {
public:
  DeviceMemory() = default;
  // `what` is named when there is too little.
  DeviceMemory(const Device &device, int64_t bytes, const char *what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = static_cast<DeviceMemory &&>(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory() override;

  int64_t size() const { return bytes; }
  char *base() const override { return start; }
  void copy(int64_t to, int64_t from, int64_t count) override;

private:
  const Device *device = nullptr;
  Address start = nullptr;
  int64_t bytes = 0;
};

// Memory of this machine that the device reads and writes by itself.
class PinnedMemory {
public:
  PinnedMemory() = default;
  PinnedMemory(const Device &device, int64_t bytes);
  PinnedMemory(PinnedMemory &&other) noexcept { *this = static_cast<PinnedMemory &&>(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  char *data() const { return start; }
  int64_t size() const { return bytes; }

private:
  const Device *device = nullptr;
  char *start = nullptr;
  int64_t bytes = 0;
};

} // namespace tenon::rt::cuda

#endif // TENON_RUNTIME_CUDA_DEVICE_H

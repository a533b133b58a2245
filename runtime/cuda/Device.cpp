#include "runtime/cuda/Device.h"

#include "runtime/Error.h"

#include <utility>

namespace tenon::rt::cuda {

static int countDevices(const Driver &driver) {
  int count = 0;
  driver.check(driver.deviceCount(&count), "count the devices");
  if (count == 0)
    refuseWithoutDevices();
  return count;
}

static DeviceFacts describe(const Driver &driver, DeviceNumber device) {
  char name[256] = "";
  int major = 0, minor = 0, processors = 0;
  driver.check(driver.deviceName(name, sizeof name, device), "ask for a device's name");
  driver.check(driver.deviceAttribute(&major, attributeMajor, device), "ask for a device's kind");
  driver.check(driver.deviceAttribute(&minor, attributeMinor, device), "ask for a device's kind");
  driver.check(driver.deviceAttribute(&processors, attributeProcessors, device),
               "ask for a device's size");
  return {name, 10 * major + minor, processors};
}

std::vector<std::string> listDevices() {
  const Driver &driver = Driver::get();
  std::vector<std::string> lines;
  for (int i = 0, count = countDevices(driver); i < count; ++i) {
    DeviceNumber device = 0;
    driver.check(driver.device(&device, i), "open a device");
    const DeviceFacts facts = describe(driver, device);
    lines.push_back(fmt::format("{}: {}, sm_{}, {} processors", i, facts.name, facts.capability,
                                facts.processors));
  }
  return lines;
}

bool mayBeginEarly(const tenon_image &image, const DeviceFacts &facts, int driverVersion) {
  constexpr int firstToWait = 90, firstWithGraphs = 12030;
  const bool waits = image.kind == TENON_IMAGE_EMULATED || image.capability >= firstToWait;
  return waits && facts.capability >= firstToWait && driverVersion >= firstWithGraphs;
}

Device::Device(int wanted) : api(Driver::get()) {
  const int count = countDevices(api);
  if (wanted < 0 || wanted >= count)
    throw Error(ExitMachine,
                fmt::format("--device {}: there {} {} device{}, counted from 0", wanted,
                            count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
  api.check(api.device(&number, wanted), "open a device");
  about = describe(api, number);
  Context context = nullptr;
  api.check(api.retainContext(&context, number), "use the device");
  api.check(api.setContext(context), "use the device");
  api.check(api.createStream(&queue, /*not ordered with others*/ 1), "make a stream");
}

Device::~Device() {
  api.destroyStream(queue);
  api.releaseContext(number);
}

int64_t Device::freeBytes() const {
  size_t free = 0, total = 0;
  api.check(api.memoryInfo(&free, &total), "ask for the device's memory");
  return static_cast<int64_t>(free);
}

DeviceMemory::DeviceMemory(const Device &device, int64_t bytes, const char *what)
    : device(&device), bytes(bytes) {
  if (bytes == 0)
    return;
  if (device.driver().allocate(&start, static_cast<size_t>(bytes)) != 0)
    throw Error(ExitMachine,
                fmt::format("{}: no memory for {}: it needs {} MiB, {} MiB are free",
                            device.facts().name, what, bytes >> 20, device.freeBytes() >> 20));
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (start)
    device->driver().release(start);
}

void DeviceMemory::copy(int64_t to, int64_t from, int64_t count) {
  const Driver &driver = device->driver();
  driver.check(driver.copy(start + to, start + from, static_cast<size_t>(count), device->stream()),
               "copy a block of the KV cache");
}

PinnedMemory::PinnedMemory(const Device &device, int64_t bytes) : device(&device), bytes(bytes) {
  void *memory = nullptr;
  device.driver().check(device.driver().allocateHost(&memory, static_cast<size_t>(bytes), 0),
                        "reserve memory for transfers");
  start = static_cast<char *>(memory);
}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (start)
    device->driver().releaseHost(start);
}

} // namespace tenon::rt::cuda

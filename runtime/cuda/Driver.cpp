#include "runtime/cuda/Driver.h"

#include "runtime/Error.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tenon::rt::cuda {

// The first driver that knows what images of our compiler need (CUDA 12).
static constexpr int oldestDriver = 12000;

Driver::Driver() {
  const char *named = std::getenv("TENON_CUDA_DRIVER");
  const char *path = named ? named : "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(ExitMachine, fmt::format("this executable needs an NVIDIA GPU and its driver: {}; "
                                         "compile with --target cpu for machines without",
                                         dlerror()));
#define TENON_CUDA_FIND(name, symbol, parameters)                                                  \
  name = reinterpret_cast<decltype(name)>(dlsym(library, symbol));                                 \
  if (!name)                                                                                       \
    throw Error(ExitMachine,                                                                       \
                fmt::format("the NVIDIA driver ({}) is too old: it lacks {}; CUDA "                \
                            "{}.{} is needed",                                                     \
                            path, symbol, oldestDriver / 1000, oldestDriver % 1000 / 10));
  TENON_CUDA_FUNCTIONS(TENON_CUDA_FIND)
#undef TENON_CUDA_FIND
  check(driverVersion(&speaks), "ask for the driver's version");
  if (speaks < oldestDriver)
    throw Error(ExitMachine,
                fmt::format("the NVIDIA driver speaks CUDA {}.{}, {}.{} is needed", speaks / 1000,
                            speaks % 1000 / 10, oldestDriver / 1000, oldestDriver % 1000 / 10));
  constexpr Result noDevice = 100;
  if (Result result = init(0); result == noDevice)
    refuseWithoutDevices();
  else
    check(result, "start");
}

const Driver &Driver::get() {
  static const Driver driver;
  return driver;
}

void refuseWithoutDevices() {
  throw Error(ExitMachine,
              "this executable needs an NVIDIA GPU, and the driver finds none; compile "
              "with --target cpu for machines without");
}

void Driver::check(Result result, const char *what) const {
  if (result == 0)
    return;
  const char *name = nullptr, *text = nullptr;
  errorName(result, &name);
  errorText(result, &text);
  throw Error(ExitMachine, fmt::format("CUDA: cannot {}: {} ({})", what, text ? text : "failure",
                                       name ? name : std::to_string(result)));
}

} // namespace tenon::rt::cuda

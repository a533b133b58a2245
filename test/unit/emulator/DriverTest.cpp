// The stand-in for the CUDA driver, called as the runtime calls it.
#include "runtime/cuda/Driver.h"
#include "runtime/kernel_abi.h"
#include <dlfcn.h>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <thread>
#include <vector>

namespace {

using tenon::rt::cuda::LaunchAttribute;
using ::testing::Each;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

enum {
  Done = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialised = 3,
  NoDevice = 100,
  InvalidImage = 200,
  InvalidContext = 201,
  NotFound = 500,
  NotReady = 600,
  LaunchFailed = 719,
  CaptureUnsupported = 900
};

// cu("cuMemAlloc_v2", &address, size_t(4)): the function of that name.
template <typename... Arguments> int cu(const char *name, Arguments... arguments) {
  static void *library = dlopen(TENON_EMULATED_DRIVER, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  auto *function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function(arguments...);
}

std::string errorText() {
  const char *text = nullptr;
  cu("cuGetErrorString", 0, &text);
  return text;
}

class DriverTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cu("cuInit", 0u), Done);
    void *context = nullptr;
    ASSERT_EQ(cu("cuDevicePrimaryCtxRetain", &context, 0), Done);
    ASSERT_EQ(cu("cuCtxSetCurrent", context), Done);
    ASSERT_EQ(cu("cuStreamCreate", &stream, 1u), Done);
    ASSERT_EQ(cu("cuMemAlloc_v2", &memory, Bytes), Done);
    ASSERT_EQ(cu("cuMemHostAlloc", reinterpret_cast<void **>(&pinned), Bytes, 0u), Done);
    std::fill_n(pinned, Count, 10);
  }
  void TearDown() override {
    cu("cuMemFree_v2", memory);
    cu("cuMemFreeHost", static_cast<void *>(pinned));
    cu("cuStreamDestroy_v2", stream);
  }

  void *load() {
    std::ifstream file(TENON_DRIVER_KERNELS, std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
    void *module = nullptr;
    EXPECT_EQ(cu("cuModuleLoadData", &module, static_cast<const void *>(image.data())), Done)
        << errorText();
    return module;
  }
  void *find(void *module, const char *name) {
    void *function = nullptr;
    EXPECT_EQ(cu("cuModuleGetFunction", &function, module, name), Done) << errorText();
    return function;
  }
  int launch(void *function, unsigned threads = 64, unsigned sharedBytes = 0, unsigned rows = 1) {
    tenon_arguments arguments = {};
    arguments.io[0] = reinterpret_cast<void *>(memory);
    void *parameters[] = {&arguments};
    const LaunchAttribute early = {tenon::rt::cuda::launchBeginsEarly, 0, 1, {}};
    const tenon::rt::cuda::LaunchConfig config = {
        1,      rows, 1, threads, 1, 1, sharedBytes, static_cast<tenon::rt::cuda::Stream>(stream),
        &early, 1};
    return cu("cuLaunchKernelEx", &config, function, static_cast<void **>(parameters),
              static_cast<void **>(nullptr));
  }
  int copyIn(const int32_t *from) {
    return cu("cuMemcpyHtoDAsync_v2", memory, static_cast<const void *>(from), Bytes, stream);
  }
  int copyOut(int32_t *to, size_t bytes = Bytes) {
    return cu("cuMemcpyDtoHAsync_v2", static_cast<void *>(to), memory, bytes, stream);
  }
  int wait() { return cu("cuStreamSynchronize", stream); }
  std::vector<int32_t> values() const { return {pinned, pinned + Count}; }

  static constexpr size_t Count = 64, Bytes = Count * 4;
  void *stream = nullptr;
  uint64_t memory = 0;
  int32_t *pinned = nullptr;
  std::string image;
};

TEST_F(DriverTest, NothingHappensBeforeSomebodyWaits) {
  void *module = load(), *add = find(module, "add3");
  EXPECT_EQ(copyIn(pinned), Done);
  EXPECT_EQ(launch(add), Done);
  EXPECT_EQ(copyOut(pinned), Done);
  EXPECT_THAT(values(), Each(-1));
  std::fill_n(pinned, Count, 20); // too early: the copy in has not read it yet
  EXPECT_EQ(wait(), Done);
  EXPECT_THAT(values(), Each(23));
  EXPECT_EQ(cu("cuModuleUnload", module), Done);
}

TEST_F(DriverTest, PageableMemoryIsCopiedAtOnce) {
  std::vector<int32_t> pageable(Count, 5);
  EXPECT_EQ(copyIn(pageable.data()), Done);
  pageable.assign(Count, 6);
  EXPECT_EQ(copyOut(pageable.data()), Done);
  EXPECT_THAT(pageable, Each(5));
}

TEST_F(DriverTest, GraphsReplay) {
  void *module = load(), *add = find(module, "add3"), *graph = nullptr, *exec = nullptr;
  EXPECT_EQ(copyIn(pinned), Done);
  EXPECT_EQ(wait(), Done); // copying out fills the same buffer
  EXPECT_EQ(cu("cuStreamBeginCapture_v2", stream, 2), Done);
  EXPECT_EQ(launch(add), Done);
  EXPECT_EQ(wait(), CaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream, &graph), Done);
  EXPECT_EQ(cu("cuGraphInstantiateWithFlags", &exec, graph, 0ull), Done);
  EXPECT_EQ(cu("cuGraphDestroy", graph), Done);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cu("cuGraphLaunch", exec, stream), Done);
  EXPECT_EQ(copyOut(pinned), Done);
  EXPECT_EQ(wait(), Done);
  EXPECT_THAT(values(), Each(19));
  EXPECT_EQ(cu("cuGraphExecDestroy", exec), Done);
  EXPECT_EQ(cu("cuModuleUnload", module), Done);
}

TEST_F(DriverTest, ModulesBesideEachOther) {
  void *first = load(), *second = load();
  EXPECT_NE(find(first, "add3"), find(second, "add3"));
  EXPECT_EQ(cu("cuModuleUnload", first), Done);
  EXPECT_EQ(copyIn(pinned), Done);
  EXPECT_EQ(launch(find(second, "add3")), Done);
  EXPECT_EQ(wait(), Done);
  void *none = nullptr;
  EXPECT_EQ(cu("cuModuleGetFunction", &none, second, "none"), NotFound);
  EXPECT_EQ(cu("cuModuleUnload", second), Done);
  const char text[64] = "no image";
  EXPECT_EQ(cu("cuModuleLoadData", &none, static_cast<const void *>(text)), InvalidImage);
}

TEST_F(DriverTest, AFaultEndsEverything) {
  auto fails = [&] {
    void *add = find(load(), "addBehind");
    if (launch(add) != Done || wait() != LaunchFailed)
      std::_Exit(1);
    std::fprintf(stderr, "%s\n", errorText().c_str());
    std::_Exit(launch(add) == LaunchFailed && copyIn(pinned) == LaunchFailed ? 0 : 1);
  };
  EXPECT_EXIT(fails(), ExitedWithCode(0),
              "addBehind: block .0, 0., thread 0: .* 0 bytes behind an allocation of 256 bytes");
}

TEST_F(DriverTest, TheHostKeepsOff) {
  EXPECT_DEATH(*reinterpret_cast<volatile char *>(memory + 7) = 1,
               "the host touches device memory, at byte 7 of an allocation of 256 bytes");
}

TEST_F(DriverTest, LaunchesThatNoDeviceTakes) {
  void *module = load(), *add = find(module, "add3");
  EXPECT_EQ(launch(add, 96), InvalidValue);
  EXPECT_THAT(errorText(), HasSubstr("more threads than it was compiled for"));
  EXPECT_EQ(launch(add, 64, 0, 65536), InvalidValue);
  EXPECT_EQ(launch(add, 64, 49153), InvalidValue);
  EXPECT_THAT(errorText(), HasSubstr("49153 bytes of shared memory, but it may have 49152"));
  EXPECT_EQ(cu("cuFuncSetAttribute", add, 8, 49153), Done);
  EXPECT_EQ(launch(add, 64, 49153), Done);
  EXPECT_EQ(cu("cuFuncSetAttribute", add, 8, (227 << 10) + 1), InvalidValue);
  EXPECT_EQ(wait(), Done);
  EXPECT_EQ(cu("cuModuleUnload", module), Done);
}

TEST_F(DriverTest, CopiesStayInAllocations) {
  EXPECT_EQ(copyOut(pinned, Bytes + 1), InvalidValue);
  EXPECT_THAT(errorText(), HasSubstr("a copy of 257 bytes at byte 0 of an allocation of 256"));
}

TEST_F(DriverTest, EventsHappenInTheirTurn) {
  void *begin = nullptr, *end = nullptr;
  float milliseconds = -1;
  EXPECT_EQ(cu("cuEventCreate", &begin, 0u), Done);
  EXPECT_EQ(cu("cuEventCreate", &end, 0u), Done);
  EXPECT_EQ(cu("cuEventRecord", begin, stream), Done);
  EXPECT_EQ(cu("cuEventRecord", end, stream), Done);
  EXPECT_EQ(cu("cuEventElapsedTime", &milliseconds, begin, end), NotReady);
  EXPECT_EQ(wait(), Done);
  EXPECT_EQ(cu("cuEventElapsedTime", &milliseconds, begin, end), Done);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cu("cuEventDestroy_v2", begin), Done);
  EXPECT_EQ(cu("cuEventDestroy_v2", end), Done);
}

TEST_F(DriverTest, ThreadsNeedAContext) {
  std::thread([&] { EXPECT_EQ(wait(), InvalidContext); }).join();
}

TEST_F(DriverTest, MemoryEnds) {
  setenv("TENON_EMULATED_MEMORY", "1000000", 1);
  size_t free = 0, total = 0;
  EXPECT_EQ(cu("cuMemGetInfo_v2", &free, &total), Done);
  EXPECT_EQ(total, 1000000u);
  uint64_t more = 0;
  EXPECT_EQ(cu("cuMemAlloc_v2", &more, free + 1), OutOfMemory);
  EXPECT_EQ(cu("cuMemAlloc_v2", &more, free), Done);
  EXPECT_EQ(cu("cuMemFree_v2", more), Done);
  EXPECT_EQ(cu("cuMemFree_v2", more), InvalidValue);
  unsetenv("TENON_EMULATED_MEMORY");
}

TEST(Driver, BeforeItStarts) {
  auto starts = [] {
    int count = 0;
    if (cu("cuDeviceGetCount", &count) != NotInitialised)
      std::exit(1);
    setenv("TENON_EMULATED_DEVICES", "0", 1);
    std::exit(cu("cuInit", 0u) == NoDevice ? 0 : 2);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process of its own
  EXPECT_EXIT(starts(), ExitedWithCode(0), "");
}

} // namespace

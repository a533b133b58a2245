// What a device is asked to do, by what it is.
#include "runtime/cuda/Device.h"
#include <gtest/gtest.h>

using namespace tenon::rt::cuda;

namespace {

// Code that does not wait must never begin early: PTX for sm_80 runs on later devices, too.
TEST(Device, BeginsEarlyOnlyWithCodeThatWaits) {
  const tenon_image sm80 = {"sm_80", TENON_IMAGE_CUBIN, 80, nullptr, 0};
  const tenon_image sm90 = {"sm_90", TENON_IMAGE_CUBIN, 90, nullptr, 0};
  const tenon_image ptx80 = {"compute_80", TENON_IMAGE_PTX, 80, nullptr, 0};
  const tenon_image ptx90 = {"compute_90", TENON_IMAGE_PTX, 90, nullptr, 0};
  const DeviceFacts a100 = {"A100", 80, 108}, h200 = {"H200", 90, 132}, later = {"later", 120, 170};
  EXPECT_FALSE(mayBeginEarly(sm80, a100, 13000));
  EXPECT_FALSE(mayBeginEarly(ptx80, h200, 13000));
  EXPECT_FALSE(mayBeginEarly(ptx80, later, 13000));
  EXPECT_TRUE(mayBeginEarly(sm90, h200, 13000));
  EXPECT_TRUE(mayBeginEarly(ptx90, later, 12030));
  EXPECT_FALSE(mayBeginEarly(sm90, h200, 12020));
}

} // namespace

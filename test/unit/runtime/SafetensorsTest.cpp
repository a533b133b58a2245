// Reading what others wrote, writing what others read, refusing what is broken.
#include "runtime/Safetensors.h"

#include "Toy.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace tenon::rt;

namespace {
std::string path(const std::string &name) { return toy::scratchFolder() + "/" + name; }

std::string file(const std::string &header, const std::string &data) {
  uint64_t bytes = header.size();
  return std::string(reinterpret_cast<const char *>(&bytes), 8) + header + data;
}

std::string refusal(const std::string &bytes) {
  toy::writeFile(path("hostile.safetensors"), bytes);
  try {
    SafetensorsFile file(path("hostile.safetensors"));
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitRefused);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}
} // namespace

TEST(Safetensors, ReadsTheOracle) {
  SafetensorsFile golden(TENON_ORACLE_DIR "/tiny/llama/golden.safetensors");
  const Tensor *ids = golden.find("batch.input_ids");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->dtype, "I64");
  EXPECT_EQ(ids->shape, (std::vector<int64_t>{3, 16}));
  EXPECT_EQ(golden.find("nothing"), nullptr);
}

TEST(Safetensors, WritesInAnyOrderAndLeavesTheRestZero) {
  const std::string name = path("written.safetensors");
  {
    SafetensorsWriter writer(name, {{"a", {2, 3}}, {"b", {4}}});
    const float values[] = {1, 2, 3};
    writer.write(1, 1, values, 3);
    writer.write(0, 3, values, 3);
    EXPECT_NE(access(name.c_str(), F_OK), 0) << "visible before it is finished";
    writer.finish();
  }
  SafetensorsFile file(name);
  float a[6], b[4];
  ASSERT_EQ(file.find("a")->elements, 6);
  std::memcpy(a, file.find("a")->data, sizeof a);
  std::memcpy(b, file.find("b")->data, sizeof b);
  EXPECT_EQ(std::vector<float>(a, a + 6), (std::vector<float>{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(std::vector<float>(b, b + 4), (std::vector<float>{0, 1, 2, 3}));
}

TEST(Safetensors, AnUnfinishedFileDisappears) {
  const std::string name = path("unfinished.safetensors");
  {
    SafetensorsWriter writer(name, {{"a", {2}}});
  }
  EXPECT_NE(access(name.c_str(), F_OK), 0);
  EXPECT_NE(access((name + ".partial").c_str(), F_OK), 0);
  EXPECT_THROW(SafetensorsWriter("/nonexistent/x", {{"a", {2}}}), Error);
  EXPECT_THROW(SafetensorsWriter(name, {{"a", {int64_t(1) << 40, int64_t(1) << 40}}}), Error);
}

TEST(Safetensors, HostileFilesAreRefusedInOneLine) {
  EXPECT_THROW(SafetensorsFile("/nonexistent"), Error);
  EXPECT_THROW(SafetensorsFile("/"), Error);
  refusal("");
  refusal("short");
  refusal(std::string(8, '\xff')); // a header of 2^64 - 1 bytes
  refusal(file("{", ""));
  refusal(file("[]", ""));
  refusal(file(std::string(100000, '['), ""));
  refusal(file(R"({"a": 1})", ""));
  refusal(file(R"({"a": {"dtype": "F32", "shape": [1]}})", "1234"));
  auto entry = [](const std::string &dtype, const std::string &shape, const std::string &at) {
    return file(R"({"a": {"dtype": ")" + dtype + R"(", "shape": )" + shape +
                    R"(, "data_offsets": )" + at + "}}",
                "12345678");
  };
  toy::writeFile(path("good.safetensors"), entry("F32", "[2]", "[0, 8]"));
  EXPECT_EQ(SafetensorsFile(path("good.safetensors")).tensors().size(), 1u);
  refusal(entry("F31", "[2]", "[0, 8]"));
  refusal(entry("F32", "[3]", "[0, 8]"));
  refusal(entry("F32", "[2]", "[0, 9]"));
  refusal(entry("F32", "[2]", "[8, 0]"));
  refusal(entry("F32", "[2]", "[1, 9]"));
  refusal(entry("F32", "[-2]", "[0, 8]"));
  refusal(entry("F32", "[2.0]", "[0, 8]"));
  refusal(entry("F32", "[18446744073709551615]", "[0, 8]"));
  refusal(entry("F32", "[4294967296, 4294967296]", "[0, 0]"));
  refusal(entry("F32", "[4611686018427387906]", "[0, 8]")); // * 4 wraps around to 8
  refusal(entry("F32", R"("2")", "[0, 8]"));
  refusal(entry("F32", "[2]", "[0, 18446744073709551615]"));
  EXPECT_NE(refusal(entry("F32", "[2]", "[0, 9]")).find("'a'"), std::string::npos);
}

// What users get wrong: one line that says what and where, and the documented exit code.
#include "Support.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace conformance;

namespace {

const std::string model = oracle + "tiny/llama";

class BadInput : public testing::Test {
protected:
  void SetUp() override {
    executable = compile(model, {"--precision", "f32"});
    ASSERT_NE(executable, "");
  }

  std::string copy(const std::string &name) {
    const std::string path = scratch(name);
    std::filesystem::copy_file(executable, path, std::filesystem::copy_options::overwrite_existing);
    return path;
  }

  std::string executable;
};

TEST_F(BadInput, IdOutsideTheVocabulary) {
  expectRefused(run(executable, {"generate", "--ids", "1,2,272", "-n", "4"}), 1, "0..271");
  expectRefused(run(executable, {"generate", "--ids", "1,-2", "-n", "4"}), 1, "-2");
}

TEST_F(BadInput, PromptLongerThanTheContext) {
  expectRefused(
      run(executable, {"generate", "--ids", join(std::vector<int64_t>(129, 5)), "-n", "4"}), 1,
      "128");
}

TEST_F(BadInput, TextWithoutATokenizer) {
  expectRefused(run(executable, {"generate", "hello"}), 1, "tokenizer");
}

TEST_F(BadInput, HiddenStatesNotCompiledIn) {
  expectRefused(run(executable, {"logits", "--input", model + "/golden.safetensors", "--output",
                                 scratch("out"), "--hidden"}),
                1, "--emit-hidden");
}

TEST_F(BadInput, StrippedExecutable) {
  const std::string path = copy("stripped");
  const Result strip = run("/usr/bin/strip", {path});
  if (strip.code == 127)
    GTEST_SKIP() << "strip is not installed";
  ASSERT_EQ(strip.code, 0) << strip.err;
  expectRefused(run(path, {"generate", "--ids", "1", "-n", "1"}), 1, "stripped or truncated");
}

TEST_F(BadInput, TruncatedExecutable) {
  const uint64_t size = std::filesystem::file_size(executable);
  for (uint64_t missing : {uint64_t(1), uint64_t(8), uint64_t(4096), uint64_t(300000)}) {
    const std::string path = copy("truncated");
    std::filesystem::resize_file(path, size - missing);
    expectRefused(run(path, {"generate", "--ids", "1", "-n", "1"}), 1, "truncated");
  }
}

TEST_F(BadInput, UnknownOption) {
  EXPECT_EQ(run(executable, {"generate", "--nope"}).code, 2);
  EXPECT_EQ(run(executable, {"logits", "--nope"}).code, 2);
  EXPECT_EQ(run(compiler, {"compile", model, "--nope"}).code, 2);
  EXPECT_EQ(run(compiler, {"nope"}).code, 2);
}

TEST_F(BadInput, CompilerOptions) {
  expectRefused(run(compiler, {"compile", model, "--precision", "f33", "-o", scratch("x")}), 1,
                "bf16");
  expectRefused(run(compiler, {"compile", scratch("absent"), "-o", scratch("x")}), 1, "absent");
  expectRefused(run(compiler, {"compile", model, "--weights", scratch("absent.safetensors"), "-o",
                               scratch("x")}),
                1, "absent.safetensors");
}

// Nothing was left behind either.
TEST_F(BadInput, CudaWithoutItsCompiler) {
  const std::string path = scratch("cuda");
  setenv("TENON_NVRTC", "/nowhere/libnvrtc.so", 1);
  expectRefused(run(compiler, {"compile", model, "--target", "cuda", "-o", path}), 3, "no NVRTC");
  unsetenv("TENON_NVRTC");
  EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace

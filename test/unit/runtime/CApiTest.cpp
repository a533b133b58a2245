// tenon.h through a shared library that was linked as --emit=lib links it.
#include "runtime/tenon.h"

#include "Toy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <dlfcn.h>

namespace {

class CApi : public testing::Test {
protected:
  void SetUp() override {
    static const std::string path = [] { // written once: a loaded library must not change
      std::string file = toy::scratchFolder() + "/libtoy.so";
      toy::writeFile(file, toy::append(toy::readFile(TENON_TEST_TOY_LIBRARY), toy::sections()));
      return file;
    }();
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(handle) << dlerror();
    open = function<decltype(tenon_open)>("tenon_open");
    close = function<decltype(tenon_close)>("tenon_close");
    lastError = function<decltype(tenon_last_error)>("tenon_last_error");
    generate = function<decltype(tenon_generate)>("tenon_generate");
    logits = function<decltype(tenon_logits)>("tenon_logits");
  }
  template <typename F> F *function(const char *name) {
    void *symbol = dlsym(handle, name);
    EXPECT_TRUE(symbol) << name;
    return reinterpret_cast<F *>(symbol);
  }

  void *handle = nullptr;
  decltype(tenon_open) *open;
  decltype(tenon_close) *close;
  decltype(tenon_last_error) *lastError;
  decltype(tenon_generate) *generate;
  decltype(tenon_logits) *logits;
};

int collect(void *user, int32_t token, const char *, int64_t) {
  auto *ids = static_cast<std::vector<int32_t> *>(user);
  ids->push_back(token);
  return ids->size() == 5; // ends after five
}

} // namespace

TEST_F(CApi, GeneratesAndScores) {
  tenon_model *model = nullptr;
  ASSERT_EQ(open(TENON_API_VERSION, nullptr, nullptr, &model), 0) << lastError();
  EXPECT_EQ(function<decltype(tenon_vocab)>("tenon_vocab")(model), toy::vocab);
  EXPECT_EQ(function<decltype(tenon_context)>("tenon_context")(model), toy::context);
  EXPECT_NE(std::string(function<decltype(tenon_info)>("tenon_info")(model)).find("\"toy\""),
            std::string::npos);

  const int32_t prompt[] = {3, 1, 4};
  std::vector<int32_t> ids;
  tenon_generate_options options = {};
  options.max_tokens = 4;
  EXPECT_EQ(generate(model, prompt, 3, &options, collect, &ids), 4) << lastError();
  EXPECT_EQ(ids, toy::greedy({3, 1, 4}, 4));
  ids.clear();
  EXPECT_EQ(generate(model, prompt, 3, nullptr, collect, &ids), 5);

  std::vector<float> rows(3 * toy::vocab);
  EXPECT_EQ(logits(model, prompt, 3, rows.data()), 0);
  EXPECT_EQ(rows[2 * toy::vocab + toy::next({3, 1, 4})], 0);
  close(model);
}

TEST_F(CApi, FailuresHaveALine) {
  tenon_model *model = nullptr;
  EXPECT_LT(open(99, nullptr, nullptr, &model), 0);
  EXPECT_NE(std::string(lastError()).find("version"), std::string::npos);
  EXPECT_LT(open(TENON_API_VERSION, "/nonexistent", nullptr, &model), 0);
  EXPECT_NE(std::string(lastError()).find("/nonexistent"), std::string::npos);
  ASSERT_EQ(open(TENON_API_VERSION, nullptr, nullptr, &model), 0);
  const int32_t bad[] = {1, 1000};
  EXPECT_LT(generate(model, bad, 2, nullptr, nullptr, nullptr), 0);
  EXPECT_LT(generate(model, bad, -2, nullptr, nullptr, nullptr), 0);
  EXPECT_LT(generate(model, bad, 0, nullptr, nullptr, nullptr), 0);
  EXPECT_LT(logits(model, bad, 2, nullptr), 0);
  EXPECT_LT(function<decltype(tenon_tokenize)>("tenon_tokenize")(model, "x", 1, nullptr, 0), 0);
  EXPECT_NE(std::string(lastError()).find("tokenizer"), std::string::npos);
  close(model);
}

TEST_F(CApi, ExportsNothingElse) { EXPECT_FALSE(dlsym(handle, "tenon_compiled")); }

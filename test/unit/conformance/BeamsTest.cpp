// Beam search of compiled models against transformers': the same ids in every beam, the same
// scores.
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <tuple>

using namespace conformance;

namespace {

class Beams : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// The model with another ending id; every beam runs to the limit without one.
std::string compileWithEnding(const std::string &model, const std::string &backend,
                              const nlohmann::json &eos) {
  const std::string folder = oracle + "tiny/" + model;
  const std::string ending = eos.is_null() ? "none" : std::to_string(eos.get<int>());
  const std::string file = scratch(model + "-eos-" + ending + ".yaml");
  const Result imported = run(compiler, {"import", folder, "-o", file});
  EXPECT_EQ(imported.code, 0) << imported.err;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const std::regex generation("\ngeneration: \\{eos: \\[[^\\]]*\\]");
  EXPECT_TRUE(std::regex_search(text.str(), generation));
  std::ofstream(file) << std::regex_replace(
      text.str(), generation, "\ngeneration: {eos: [" + (eos.is_null() ? "" : ending) + "]");
  return compile(file, {"--target", backend, "--precision", "f32"});
}

TEST_P(Beams, MatchTransformers) {
  const auto [model, backend] = GetParam();
  const std::string folder = oracle + "tiny/" + model;
  const std::string prompt =
      join(readTensors(folder + "/golden.safetensors")["input_ids"].integers());
  const nlohmann::json cases = readJson(folder + "/golden.json")["beam"];
  ASSERT_GE(cases.size(), 5u);
  const bool isEncoderDecoder = readJson(folder + "/golden.json").value("kind", "") == "encdec";
  for (const nlohmann::json &golden : cases) {
    SCOPED_TRACE(golden.dump());
    const nlohmann::json &early = golden["early_stopping"], &eos = golden["eos_token_id"];
    const std::string executable = compileWithEnding(model, backend, eos);
    ASSERT_NE(executable, "");
    for (const char *threads : {"1", "2"}) {
      const nlohmann::json json = runJson(
          executable, {"generate", "--ids", prompt, "--json", "--threads", threads, "-n",
                       std::to_string(golden["max_new_tokens"].get<int>()), "--beams",
                       std::to_string(golden["num_beams"].get<int>()), "--length-penalty",
                       std::to_string(golden["length_penalty"].get<double>()), "--early-stopping",
                       early.is_string() ? early.get<std::string>() : early.dump()});
      ASSERT_EQ(json["beams"].size(), golden["sequences"].size());
      for (size_t i = 0; i < json["beams"].size(); ++i) {
        std::vector<int> want = golden["sequences"][i], got = json["beams"][i]["ids"];
        // An encoder-decoder's begin with the token that every answer begins with. Padding stands
        // behind the ending id.
        if (isEncoderDecoder)
          want.erase(want.begin());
        auto end = eos.is_null() ? want.end() : std::find(want.begin(), want.end(), eos.get<int>());
        want.erase(end == want.end() ? end : end + 1, want.end());
        EXPECT_EQ(got, want) << i;
        EXPECT_NEAR(json["beams"][i]["score"].get<double>(), golden["scores"][i].get<double>(),
                    2e-4)
            << i;
      }
      EXPECT_EQ(json["ids"], json["beams"][0]["ids"]);
      const bool ended = !eos.is_null() && json["ids"].back() == eos;
      EXPECT_EQ(json["finish_reason"], ended ? "stop" : "length");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, Beams,
                         testing::Combine(testing::Values("llama", "gpt2", "t5"),
                                          testing::Values("reference", "cpu")),
                         [](const testing::TestParamInfo<Beams::ParamType> &info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

} // namespace

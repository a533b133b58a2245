// Beam search of compiled models against transformers': the same ids in every beam, the same
// scores.
#include "Support.h"
#include "Table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

using namespace conformance;

namespace {

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

class Beams : public ModelTest {
protected:
  void checkOn(const std::string &backend);
};

void Beams::checkOn(const std::string &backend) {
  const std::string model = GetParam(), folder = folderOf(model);
  row = model + " " + backend + " f32";
  const std::string prompt = join(golden["input_ids"].integers());
  const nlohmann::json cases = readJson(folder + "/golden.json")["beam"];
  ASSERT_GE(cases.size(), 5u);
  const bool isEncoderDecoder = readJson(folder + "/golden.json").value("kind", "") == "encdec";
  for (const nlohmann::json &search : cases) {
    SCOPED_TRACE(search.dump());
    const nlohmann::json &early = search["early_stopping"], &eos = search["eos_token_id"];
    const std::string executable = compileWithEnding(model, backend, eos);
    ASSERT_NE(executable, "");
    for (const char *threads : {"1", "2"}) {
      const nlohmann::json json = runJson(
          executable, {"generate", "--ids", prompt, "--json", "--threads", threads, "-n",
                       std::to_string(search["max_new_tokens"].get<int>()), "--beams",
                       std::to_string(search["num_beams"].get<int>()), "--length-penalty",
                       std::to_string(search["length_penalty"].get<double>()), "--early-stopping",
                       early.is_string() ? early.get<std::string>() : early.dump()});
      ASSERT_EQ(json["beams"].size(), search["sequences"].size());
      for (size_t i = 0; i < json["beams"].size(); ++i) {
        std::vector<int> want = search["sequences"][i], got = json["beams"][i]["ids"];
        // An encoder-decoder's begin with the token that every answer begins with. Padding stands
        // behind the ending id.
        if (isEncoderDecoder)
          want.erase(want.begin());
        auto end = eos.is_null() ? want.end() : std::find(want.begin(), want.end(), eos.get<int>());
        want.erase(end == want.end() ? end : end + 1, want.end());
        EXPECT_EQ(got, want) << i;
        check("beams", std::abs(json["beams"][i]["score"].get<double>() -
                                search["scores"][i].get<double>()));
      }
      EXPECT_EQ(json["ids"], json["beams"][0]["ids"]);
      const bool ended = !eos.is_null() && json["ids"].back() == eos;
      EXPECT_EQ(json["finish_reason"], ended ? "stop" : "length");
    }
  }
}

TEST_P(Beams, OnTheReference) { checkOn("reference"); }
TEST_P(Beams, OnTheCpu) { checkOn("cpu"); }
TEST_P(Beams, OnCuda) { checkOn("cuda"); }

// Models that were searched with beams.
std::vector<std::string> listSearched() {
  std::vector<std::string> names;
  for (const char *kind : {"decoder", "encdec"})
    for (const std::string &name : listModels(kind))
      if (readJson(folderOf(name) + "/golden.json").contains("beam"))
        names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Oracle, Beams, testing::ValuesIn(listSearched()), nameOf);

} // namespace

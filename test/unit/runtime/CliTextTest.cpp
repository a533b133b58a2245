// The command line on text: the toy with a real tokenizer behind it.
#include "Process.h"
#include "frontend/tokenizer/BuildTokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using nlohmann::json;
using toy::expectRefused;
using toy::parse;
using toy::Result;

namespace {

const std::string kind = TENON_ORACLE_DIR "/tokenizers/bpe-smollm";

std::string withTokenizer(const std::string &name, const std::string &extraMeta,
                          const std::string &kind = ::kind) {
  auto blob = tenon::buildTokenizerFromJson(kind + "/tokenizer.json");
  if (!blob) {
    ADD_FAILURE() << llvm::toString(blob.takeError());
    return {};
  }
  toy::Sections sections = toy::sections(extraMeta);
  sections.push_back({"tokenizer", std::string(blob->begin(), blob->end())});
  return toy::executable(name, sections);
}

const std::string &program() {
  static const std::string file = withTokenizer("text", R"("tokenizer": true)");
  return file;
}

Result run(std::vector<std::string> arguments, const std::string &input = "") {
  return toy::run(program(), std::move(arguments), input);
}

std::vector<int32_t> tokenize(const std::string &text) {
  return parse(run({"tokenize", "--json", "--", text}))["ids"];
}

std::string detokenize(const std::vector<int32_t> &ids) {
  std::string list;
  for (int32_t id : ids)
    list += (list.empty() ? "" : ",") + std::to_string(id);
  std::string text = run({"detokenize", list}).out;
  return text.substr(0, text.size() - 1); // the newline behind it
}

double negativeLogProbability(const std::vector<int32_t> &past, int32_t next) {
  double sum = 0;
  for (int v = 0; v < toy::vocab; ++v)
    sum += std::exp(-0.25 * std::abs(v - toy::next(past)));
  return 0.25 * std::abs(next - toy::next(past)) + std::log(sum);
}

} // namespace

TEST(CliText, TokenizeAndBack) {
  json cases = json::parse(toy::readFile(kind + "/vectors.json"))["cases"];
  int checked = 0;
  for (const json &test : cases) {
    const std::string text = test["text"];
    if (text.find('\0') != std::string::npos || text == "-" || test["ids"].empty())
      continue;
    json result = parse(run({"tokenize", "--json", "--", text}));
    EXPECT_EQ(result["ids"], test["ids"]) << text;
    EXPECT_EQ(result["tokens"], test["tokens"]) << text;
    EXPECT_EQ(result["offsets"], test["offsets"]) << text;
    EXPECT_EQ(detokenize(result["ids"]), test["decoded"]) << text;
    if (++checked == 25)
      break;
  }
  EXPECT_EQ(checked, 25);
  EXPECT_EQ(run({"tokenize", "-"}, "ab ab\n").out, run({"tokenize", "ab ab"}).out);
}

TEST(CliText, GeneratesText) {
  const std::string prompt = "The time is 12";
  const std::vector<int32_t> ids = tokenize(prompt), expected = toy::greedy(ids, 30);
  json result = parse(run({prompt, "-n", "30", "--json"}));
  EXPECT_EQ(result["prompt_ids"], ids);
  EXPECT_EQ(result["ids"], expected);
  EXPECT_EQ(result["text"], detokenize(expected));
  // Streamed pieces come to the same, and every way to give a prompt is the same.
  const std::string text = result["text"].get<std::string>() + "\n";
  EXPECT_EQ(run({prompt, "-n", "30"}).out, text);
  EXPECT_EQ(run({"generate", "-n", "30", prompt}).out, text);
  EXPECT_EQ(run({"-n", "30", "--", prompt}).out, text);
  EXPECT_EQ(run({"-n", "30", "-"}, prompt + "\n").out, text);
  EXPECT_EQ(run({"-n", "30", "--stop", "qqqq", prompt}).out, text);
}

TEST(CliText, APromptMayLookLikeACommandOrAnOption) {
  EXPECT_EQ(parse(run({"-n", "1", "--json", "--", "info"}))["prompt_ids"], tokenize("info"));
  EXPECT_EQ(parse(run({"-n", "1", "--json", "--", "--help"}))["prompt_ids"], tokenize("--help"));
  expectRefused(run({""}), 1, "empty");
}

TEST(CliText, StopStringsEndTheText) {
  json whole = parse(run({"a b c", "-n", "30", "--json"}));
  const std::string text = whole["text"];
  // A stop string from the middle that spans tokens; ASCII, so that it is whole.
  size_t at = 0;
  std::string stop;
  for (at = text.size() / 3; at + 3 < text.size(); ++at) {
    stop = text.substr(at, 3);
    if (std::all_of(stop.begin(), stop.end(), [](char c) { return c > 0; }))
      break;
  }
  json result = parse(run({"a b c", "-n", "30", "--json", "--stop", "never", "--stop", stop}));
  EXPECT_EQ(result["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(result["finish_reason"], "stop");
  EXPECT_LT(result["ids"].size(), 30u);
  EXPECT_EQ(run({"a b c", "-n", "30", "--stop", stop}).out, text.substr(0, text.find(stop)) + "\n");

  const std::string file =
      withTokenizer("stop", R"("generation": {"stop": [)" + json(stop).dump() + "]}");
  EXPECT_EQ(parse(toy::run(file, {"a b c", "-n", "30", "--json"}))["finish_reason"], "stop");
  EXPECT_EQ(parse(toy::run(file, {"a b c", "-n", "30", "--json", "--ignore-eos"}))["text"], text);
}

TEST(CliText, Perplexity) {
  std::string text;
  std::vector<int32_t> ids;
  for (int i = 0; ids.size() < 100; ++i) {
    text += "word " + std::to_string(i * 37) + ", ";
    ids = tokenize(text);
  }
  ASSERT_LE(ids.size(), size_t(toy::context));
  toy::writeFile(toy::path("text.txt"), text);
  for (size_t chunk : {ids.size(), size_t(30)}) {
    double nll = 0;
    size_t scored = 0;
    for (size_t begin = 0; begin < ids.size(); begin += chunk)
      for (size_t i = begin + 1; i < std::min(begin + chunk, ids.size()); ++i, ++scored)
        nll += negativeLogProbability({ids.begin() + begin, ids.begin() + i}, ids[i]);
    std::vector<std::string> arguments = {"perplexity", toy::path("text.txt"), "--json"};
    if (chunk == 30)
      arguments.insert(arguments.end(), {"--chunk", "30"});
    json result = parse(run(arguments));
    EXPECT_NEAR(result["mean_nll"], nll / scored, 1e-5);
    EXPECT_NEAR(result["ppl"], std::exp(nll / scored), 1e-3 * std::exp(nll / scored));
    EXPECT_EQ(result["tokens"], ids.size());
    EXPECT_EQ(result["scored"], scored);
    arguments.push_back("--cached");
    result = parse(run(arguments));
    EXPECT_NEAR(result["mean_nll"], nll / scored, 1e-5);
    EXPECT_EQ(result["scored"], scored);
  }
  toy::writeFile(toy::path("text.txt"), text + text);
  expectRefused(run({"perplexity", toy::path("text.txt")}), 1, "--chunk 128");
  toy::writeFile(toy::path("text.txt"), "");
  expectRefused(run({"perplexity", toy::path("text.txt")}), 1, "at least 2 tokens");
}

// The tokenizer has 400 tokens, the head 480 rows.
TEST(CliText, IdsWithoutATokenAreNeverDrawn) {
  const std::string file = withTokenizer("padded", R"("tokenizer": true)",
                                         TENON_ORACLE_DIR "/tokenizers/bpe-bytelevel-prefix");
  using Options = std::vector<std::string>;
  for (const Options &options : {Options{"--temperature", "50", "--seed", "3"},
                                 Options{"--temperature", "0"}, Options{"--beams", "3"}}) {
    std::vector<std::string> arguments = {"generate", "--ids",        "1,2,3", "-n",
                                          "60",       "--ignore-eos", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    for (int id : parse(toy::run(file, arguments))["ids"].get<std::vector<int>>())
      EXPECT_LT(id, 400) << options[0];
  }
}

TEST(CliText, ADamagedTokenizerIsRefused) {
  toy::Sections sections = toy::sections();
  sections.push_back({"tokenizer", std::string(5000, 'x')});
  expectRefused(toy::run(toy::executable("badtokenizer", sections), {"hello"}), 1, "tokenizer");
}

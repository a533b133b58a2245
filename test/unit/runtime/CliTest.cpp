// The whole command line, run as a user runs it, on an executable whose model is the toy.
#include "Process.h"
#include "Toy.h"
#include "runtime/Safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using nlohmann::json;
using tenon::rt::SafetensorsFile;
using tenon::rt::Tensor;
using toy::expectRefused;
using toy::parse;
using toy::path;
using toy::Result;

namespace {

const std::string &plain() {
  static const std::string file = [] {
    toy::Sections sections = toy::sections();
    sections.push_back({"llm", "module { llm }"});
    sections.push_back({"sched", "module { sched }"});
    return toy::executable("toy", sections);
  }();
  return file;
}

Result run(std::vector<std::string> arguments, const std::string &input = "") {
  return toy::run(plain(), std::move(arguments), input);
}
Result run(const std::string &program, std::vector<std::string> arguments) {
  return toy::run(program, std::move(arguments));
}

struct Array {
  std::string name, dtype;
  std::vector<int64_t> shape, values;
};

void writeIntegers(const std::string &file, const std::vector<Array> &arrays) {
  json header = json::object();
  std::string data;
  for (const Array &array : arrays) {
    size_t begin = data.size();
    for (int64_t value : array.values)
      data.append(reinterpret_cast<const char *>(&value), array.dtype == "I64"   ? 8
                                                          : array.dtype == "I32" ? 4
                                                                                 : 1);
    header[array.name] = {
        {"dtype", array.dtype}, {"shape", array.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  uint64_t bytes = text.size();
  toy::writeFile(file, std::string(reinterpret_cast<const char *>(&bytes), 8) + text + data);
}

std::vector<float> floats(const SafetensorsFile &file, const std::string &name) {
  const Tensor *tensor = file.find(name);
  std::vector<float> values(tensor ? tensor->elements : 0);
  if (tensor)
    std::memcpy(values.data(), tensor->data, values.size() * 4);
  return values;
}

std::vector<float> toyLogits(const std::vector<int32_t> &ids) {
  std::vector<float> row(toy::vocab);
  for (int v = 0; v < toy::vocab; ++v)
    row[v] = -0.25f * static_cast<float>(std::abs(v - toy::next(ids)));
  return row;
}

} // namespace

TEST(Cli, GenerateJson) {
  for (std::string threads : {"1", "2"}) {
    json result =
        parse(run({"generate", "--ids", "3,1,4", "-n", "6", "--threads", threads, "--json"}));
    EXPECT_EQ(result["prompt_ids"], (std::vector<int>{3, 1, 4}));
    EXPECT_EQ(result["ids"], toy::greedy({3, 1, 4}, 6));
    EXPECT_TRUE(result["text"].is_null());
    EXPECT_EQ(result["finish_reason"], "length");
    ASSERT_EQ(result["logprobs"].size(), 6u);
    double sum = 0;
    for (float logit : toyLogits({3, 1, 4}))
      sum += std::exp(logit);
    EXPECT_NEAR(result["logprobs"][0], -std::log(sum), 1e-5);
    for (const char *key : {"load_ms", "first_token_ms", "prompt_ms", "decode_ms", "decode_tok_s"})
      EXPECT_TRUE(result["timings"][key].is_number()) << key;
  }
}

TEST(Cli, GenerateWithoutCommandPrintsIdsAndSpeed) {
  Result result = run({"--ids", "3,1,4", "-n", "2"});
  std::vector<int32_t> ids = toy::greedy({3, 1, 4}, 2);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, std::to_string(ids[0]) + " " + std::to_string(ids[1]) + " \n");
  EXPECT_NE(result.err.find("tok/s"), std::string::npos);
}

TEST(Cli, GenerateEndsAtEosAndAtTheContext) {
  std::vector<int32_t> all = toy::greedy({9, 8}, 40);
  size_t at = 5;
  while (std::find(all.begin(), all.begin() + at, all[at]) != all.begin() + at)
    ++at;
  std::string file = toy::executable(
      "eos", toy::sections(R"("generation": {"eos": [)" + std::to_string(all[at]) + "]}"));
  json result = parse(run(file, {"--ids", "9,8", "-n", "40", "--json"}));
  EXPECT_EQ(result["finish_reason"], "stop");
  EXPECT_EQ(result["ids"], std::vector<int32_t>(all.begin(), all.begin() + at + 1));
  result = parse(run(file, {"--ids", "9,8", "-n", "40", "--json", "--ignore-eos"}));
  EXPECT_EQ(result["ids"], all);
  EXPECT_EQ(result["finish_reason"], "length");

  result = parse(run({"--ids", "9,8", "-n", "10000", "--json"}));
  EXPECT_EQ(result["ids"].size(), size_t(toy::context - 2 + 1)); // the last one is never fed
  EXPECT_EQ(result["ids"], toy::greedy({9, 8}, toy::context - 1));
  EXPECT_EQ(parse(run({"--ids", "9,8", "-n", "0", "--json"}))["ids"].size(), 0u);
}

TEST(Cli, SamplingIsSeeded) {
  auto draw = [](const std::string &seed) {
    return parse(
        run({"--ids", "1", "-n", "20", "--temperature", "2", "--seed", seed, "--json"}))["ids"];
  };
  EXPECT_EQ(draw("5"), draw("5"));
  EXPECT_NE(draw("5"), draw("6"));
  EXPECT_EQ(parse(run({"--ids", "1", "-n", "5", "--top-k", "1", "--json"}))["ids"],
            toy::greedy({1}, 5));
}

TEST(Cli, Beams) {
  json result = parse(run({"--ids", "3,1,4", "-n", "4", "--beams", "3", "--json"}));
  ASSERT_EQ(result["beams"].size(), 3u);
  EXPECT_EQ(result["ids"], result["beams"][0]["ids"]);
  EXPECT_EQ(result["ids"], toy::greedy({3, 1, 4}, 4)); // every step of the toy is equally sure
  EXPECT_NE(result["beams"][1]["ids"], result["ids"]);
  EXPECT_TRUE(result["beams"][0]["text"].is_null());
  double sum = 0;
  for (double logprob : result["logprobs"])
    sum += logprob;
  EXPECT_NEAR(result["beams"][0]["score"].get<double>(), sum / 4, 1e-9);
  EXPECT_GE(result["beams"][0]["score"], result["beams"][1]["score"]);
  EXPECT_EQ(result["finish_reason"], "length");
  std::string ids;
  for (int id : result["ids"])
    ids += std::to_string(id) + " ";
  EXPECT_EQ(run({"--ids", "3,1,4", "-n", "4", "--beams", "3"}).out, ids + "\n");
  EXPECT_FALSE(parse(run({"--ids", "3", "-n", "2", "--beams", "1", "--json"})).contains("beams"));

  result = parse(run({"--ids", "9,8", "-n", "10000", "--beams", "2", "--json"}));
  EXPECT_EQ(result["ids"].size(), size_t(toy::context - 2 + 1)); // as without beams
  result = parse(run({"--ids", "9,8", "-n", "0", "--beams", "2", "--json"}));
  EXPECT_EQ(result["ids"].size(), 0u);
  EXPECT_EQ(result["beams"].size(), 0u);
}

TEST(Cli, BadInputIsOneLine) {
  expectRefused(run({"hello"}), 1, "without a tokenizer");
  expectRefused(run({"tokenize", "hello"}), 1, "without a tokenizer");
  expectRefused(run({"--", "info"}), 1, "without a tokenizer");
  expectRefused(run({"-"}, "piped"), 1, "without a tokenizer");
  expectRefused(run({"--ids", "1,x"}), 1, "'1,x'");
  expectRefused(run({"--ids", "1,,2"}), 1, "'1,,2'");
  expectRefused(run({"--ids", "1,2,"}), 1, "'1,2,'");
  expectRefused(run({"--ids", "-1"}), 1, "'-1'");
  expectRefused(run({"--ids", "99999999999999999999"}), 1, "--ids");
  expectRefused(run({"--ids", "1,480"}), 1, "outside the vocabulary 0..479");
  expectRefused(run({"--ids", "1", "text"}), 1, "not both");
  std::string many = "1";
  for (int i = 0; i < toy::context; ++i)
    many += ",1";
  expectRefused(run({"--ids", many}), 1, "the context holds 128");
  expectRefused(run({"--ids", "1", "--beams", "4", "--top-k", "5"}), 1, "--top-k and --beams 4");
  expectRefused(run({"--ids", "1", "--beams", "241"}), 1, "the vocabulary has 480");
  expectRefused(run({"--ids", "1", "--beams", "0"}), 2, "--beams");
  expectRefused(run({"--ids", "1", "--beams", "1000000000"}), 2, "--beams");
  expectRefused(run({"--ids", "1", "--beams", "2", "--early-stopping", "maybe"}), 2, "maybe");
  expectRefused(run({"--ids", "1", "--beams", "2", "--length-penalty", "inf"}), 1, "penalty");
  expectRefused(run({"--ids", "1", "--length-penalty", "2"}), 2, "--beams");
  expectRefused(run({"--ids", many, "--beams", "2"}), 1, "the context holds 128");
  expectRefused(run({"--ids", "1", "--temperature", "-1"}), 1, "temperature");
  expectRefused(run({"--ids", "1", "--top-p", "2"}), 1, "top-p");
  expectRefused(run({"--ids", "1", "--stop", "x"}), 1, "--stop");
  expectRefused(run({"detokenize", "500"}), 1, "vocabulary");
  expectRefused(run({}), 2, "prompt");
  expectRefused(run({"--bogus"}), 2, "bogus");
  expectRefused(run({"generate", "one", "two"}), 2, "two");
  expectRefused(run({"--ids", "1", "--threads", "0"}), 2, "--threads");
  expectRefused(run({"--ids", "1", "-n", "-3"}), 2, "-n");
  expectRefused(run({"--ids", "1", "-n", "many"}), 2, "-n");
  expectRefused(run({"perplexity", "/nonexistent"}), 1, "");
  expectRefused(run({"logits"}), 2, "--input");
}

TEST(Cli, HelpGoesToStandardOutput) {
  for (std::vector<std::string> arguments : {std::vector<std::string>{"--help"},
                                             {"generate", "--help"},
                                             {"logits", "--help"},
                                             {"bench", "--help"}}) {
    Result result = run(arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_NE(result.out.find("Usage"), std::string::npos);
    EXPECT_EQ(result.err, "");
  }
}

TEST(Cli, LogitsOfARaggedBatchCachedOrNot) {
  writeIntegers(path("in.safetensors"),
                {{"input_ids", "I64", {3, 5}, {1, 2, 3, 0, 0, 7, 8, 9, 10, 11, 0, 0, 0, 5, 6}},
                 {"attention_mask", "I64", {3, 5}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1}}});
  for (bool cached : {false, true}) {
    std::vector<std::string> arguments = {
        "logits",  "--input", path("in.safetensors"), "--output", path("out.safetensors"),
        "--hidden"};
    if (cached)
      arguments.push_back("--cached");
    Result result = run(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    SafetensorsFile out(path("out.safetensors"));
    ASSERT_TRUE(out.find("logits"));
    EXPECT_EQ(out.find("logits")->shape, (std::vector<int64_t>{3, 5, toy::vocab}));
    std::vector<float> logits = floats(out, "logits");
    auto row = [&](int b, int t) {
      auto begin = logits.begin() + (b * 5 + t) * toy::vocab;
      return std::vector<float>(begin, begin + toy::vocab);
    };
    const std::vector<float> zeros(toy::vocab);
    EXPECT_EQ(row(0, 0), toyLogits({1}));
    EXPECT_EQ(row(0, 2), toyLogits({1, 2, 3}));
    EXPECT_EQ(row(0, 3), zeros);
    EXPECT_EQ(row(1, 4), toyLogits({7, 8, 9, 10, 11}));
    EXPECT_EQ(row(2, 2), zeros);
    EXPECT_EQ(row(2, 3), toyLogits({5}));
    EXPECT_EQ(row(2, 4), toyLogits({5, 6}));

    EXPECT_EQ(out.find("hidden")->shape, (std::vector<int64_t>{2, 3, 5, toy::hiddenWidth}));
    std::vector<float> hidden = floats(out, "hidden"), final = floats(out, "hidden_final");
    auto at = [](const std::vector<float> &values, int index) {
      return std::vector<float>(values.begin() + index * 4, values.begin() + index * 4 + 3);
    };
    EXPECT_EQ(at(hidden, 0 * 15 + 2 * 5 + 4), (std::vector<float>{6, 1, 0})); // id, position, layer
    EXPECT_EQ(at(hidden, 1 * 15 + 0 * 5 + 2), (std::vector<float>{3, 2, 1}));
    EXPECT_EQ(at(final, 1 * 5 + 4), (std::vector<float>{11, 4, 2}));
    EXPECT_EQ(at(final, 2 * 5 + 0), (std::vector<float>{0, 0, 0}));
  }
}

TEST(Cli, LogitsOfManyLongRowsAndOne) {
  const int rows = 20, columns = 90; // more rows than run together, more tokens than a wave
  std::vector<int64_t> ids(rows * columns);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int64_t>(i * i % toy::vocab);
  writeIntegers(path("in.safetensors"), {{"input_ids", "I32", {rows, columns}, ids}});
  ASSERT_EQ(
      run({"logits", "--input", path("in.safetensors"), "--output", path("out.safetensors")}).code,
      0);
  std::vector<float> logits = floats(SafetensorsFile(path("out.safetensors")), "logits");
  for (int b = 0; b < rows; ++b)
    for (int t = 0; t < columns; t += 7) {
      auto begin = logits.begin() + (b * columns + t) * toy::vocab;
      ASSERT_EQ(std::vector<float>(begin, begin + toy::vocab),
                toyLogits({ids.begin() + b * columns, ids.begin() + b * columns + t + 1}));
    }
  writeIntegers(path("in.safetensors"), {{"input_ids", "I32", {1, 2}, {4, 5}}});
  ASSERT_EQ(run({"logits", "--input", path("in.safetensors"), "--output", path("out.safetensors"),
                 "--hidden"})
                .code,
            0);
  SafetensorsFile out(path("out.safetensors"));
  EXPECT_EQ(out.find("hidden")->shape, (std::vector<int64_t>{2, 2, 4}));
  EXPECT_EQ(out.find("hidden_final")->shape, (std::vector<int64_t>{2, 4}));
}

TEST(Cli, LogitsRefusesBadInput) {
  auto refused = [](const std::vector<Array> &arrays, const std::string &part) {
    writeIntegers(path("bad.safetensors"), arrays);
    unlink(path("none.safetensors").c_str());
    expectRefused(
        run({"logits", "--input", path("bad.safetensors"), "--output", path("none.safetensors")}),
        1, part);
    EXPECT_NE(access(path("none.safetensors").c_str(), F_OK), 0);
  };
  const Array ids = {"input_ids", "I64", {1, 4}, {1, 2, 3, 4}};
  refused({}, "input_ids is missing");
  refused({{"input_ids", "I64", {4}, {1, 2, 3, 4}}}, "[B, L]");
  refused({{"input_ids", "I64", {0, 4}, {}}}, "[B, L]");
  refused({{"input_ids", "U8", {1, 1}, {1}}}, "I64, I32");
  refused({{"input_ids", "I64", {1, 2}, {1, 480}}}, "input_ids[0, 1] is 480");
  refused({{"input_ids", "I64", {1, 2}, {1, -1}}}, "input_ids[0, 1] is -1");
  refused({{"input_ids", "I64", {1, 2}, {1, int64_t(1) << 32}}}, "outside the vocabulary");
  refused({{"input_ids", "I64", {1, 129}, std::vector<int64_t>(129)}}, "context holds 128");
  refused({ids, {"attention_mask", "I64", {1, 4}, {1, 0, 1, 1}}}, "one run of 1s");
  refused({ids, {"attention_mask", "I64", {1, 4}, {0, 0, 0, 0}}}, "no 1");
  refused({ids, {"attention_mask", "I64", {1, 4}, {1, 1, 2, 0}}}, "only 0 and 1");
  refused({ids, {"attention_mask", "I64", {1, 3}, {1, 1, 1}}}, "[1, 3]");
  refused({ids, {"token_type_ids", "I64", {1, 4}, {0, 0, 0, 0}}}, "token_type_ids");
  toy::writeFile(path("bad.safetensors"), "garbage!garbage!");
  expectRefused(run({"logits", "--input", path("bad.safetensors"), "--output", path("x")}), 1,
                "not a safetensors");
  writeIntegers(path("good.safetensors"), {ids});
  expectRefused(run({"logits", "--input", path("good.safetensors"), "--output", "/nonexistent/x"}),
                1, "/nonexistent/x");
}

TEST(Cli, Info) {
  json info = parse(run({"info", "--json"}));
  EXPECT_EQ(info["model"], "toy");
  EXPECT_EQ(info["variant"], "toy");
  EXPECT_EQ(info["variants"], (std::vector<std::string>{"future", "toy"}));
  EXPECT_EQ(info["weight_bytes"], toy::weightBytes);
  EXPECT_TRUE(info["onednn"].is_string());
  EXPECT_NE(run({"info"}).out.find("model"), std::string::npos);
  EXPECT_EQ(run({"info", "--ir"}).out, "module { llm }\nmodule { sched }\n");
  EXPECT_EQ(run({"info", "--verify"}).code, 0);
  expectRefused(run({"info", "--licenses"}), 1, "licenses");
}

TEST(Cli, DamagedFilesAreRefused) {
  const std::string bytes = toy::readFile(plain()), file = path("damaged");
  auto refused = [&](const std::string &changed, std::vector<std::string> arguments,
                     const std::string &part) {
    toy::writeFile(file, changed);
    chmod(file.c_str(), 0755);
    expectRefused(run(file, std::move(arguments)), 1, part);
  };
  refused(toy::readFile(TENON_TEST_TOY), {"info"}, "stripped or truncated; compile it again");
  refused(bytes.substr(0, bytes.size() - 1), {"--ids", "1"}, "stripped or truncated");
  std::string flipped = bytes;
  flipped[(toy::readFile(TENON_TEST_TOY).size() + 4095) / 4096 * 4096] ^= 1;
  refused(flipped, {"info", "--verify"}, "'weights' is damaged");
  std::string foreign = toy::readFile(TENON_TEST_TOY);
  toy::Sections sections = toy::sections();
  sections[0].second[3] = 'x';
  refused(toy::append(foreign, sections), {"--ids", "1"}, "another compilation");
}

TEST(Cli, Bench) {
  json bench = parse(
      run({"bench", "-p", "8,100", "-n", "4", "-d", "0,50", "-b", "1,3", "-r", "2", "--json"}));
  ASSERT_EQ(bench["prefill"].size(), 2u);
  EXPECT_EQ(bench["prefill"][1]["tokens"], 100);
  EXPECT_EQ(bench["prefill"][1]["tok_s"].size(), 2u);
  ASSERT_EQ(bench["decode"].size(), 4u);
  EXPECT_EQ(bench["decode"][3]["depth"], 50);
  EXPECT_EQ(bench["decode"][3]["batch"], 3);
  EXPECT_EQ(bench["decode"][3]["tok_s"].size(), 2u);
  EXPECT_GT(bench["decode"][3]["tok_s"][0], 0);
  for (const char *key : {"load_ms", "peak_rss_bytes", "weight_bytes", "weight_gb_s"})
    EXPECT_TRUE(bench[key].is_number()) << key;
  EXPECT_NE(run({"bench", "-p", "8", "-n", "2", "-d", "0", "-b", "1", "-r", "1"}).out.find("tok/s"),
            std::string::npos);
  expectRefused(run({"bench", "-p", "4096"}), 1, "context holds 128");
  expectRefused(run({"bench", "-p", "8", "-d", "100", "-n", "100"}), 1, "context holds 128");
}

TEST(Cli, FullDiskIsAnError) {
  if (access("/dev/full", W_OK) != 0)
    GTEST_SKIP();
  std::string command = plain() + " --ids 1 -n 3 >/dev/full 2>" + path("stderr");
  int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(toy::readFile(path("stderr")).find("standard output"), std::string::npos);
}

// OUT bench: prompt and generation speed, measured in this process.
//
//   prefill   tokens / time of one prompt, the last row scored
//   decode    batch * n / time of n greedy steps behind `depth` cached tokens
//
// Of an encoder, alone or before a decoder, prefill is the encoding of the prompt. A decoder's
// steps then attend to a source of 128 tokens.
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/RowMath.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <numeric>
#include <sys/resource.h>

namespace tenon::rt {

namespace {
constexpr int sourceTokens = 128;

struct Plan {
  std::vector<int> prompts = {128, 512}, depths = {0, 1024}, batches = {1, 8};
  int steps = 128, repeats = 5;
};

class Bench {
public:
  Bench(Engine &engine, const Plan &plan)
      : engine(engine), plan(plan), source(engine.memoryPool()) {
    ids.resize(static_cast<size_t>(engine.context()));
    const auto vocabulary = static_cast<uint64_t>(std::min(engine.vocab(), engine.encoderVocab()));
    uint32_t state = 1;
    for (int32_t &id : ids) {
      state = state * 1664525 + 1013904223;
      id = static_cast<int32_t>((uint64_t(state) * vocabulary) >> 32);
    }
    if (engine.hasMemory())
      encode(source, std::min(sourceTokens, engine.context()));
  }

  std::vector<double> prefill(int tokens) {
    std::vector<double> rates;
    for (int repeat = -1; repeat < plan.repeats; ++repeat) { // the first warms up
      KvSequence sequence(engine.pool()), memory(engine.memoryPool());
      Clock clock;
      if (engine.hasMemory())
        encode(memory, tokens);
      else
        feed(sequence, tokens);
      if (repeat >= 0)
        rates.push_back(tokens / clock.ms() * 1000);
    }
    return rates;
  }

  std::vector<double> decode(int depth, int batch) {
    std::vector<KvSequence> sequences;
    for (int i = 0; i < batch; ++i) { // each its own copy: a fork would be read from a warm cache
      sequences.emplace_back(engine.pool());
      feed(sequences.back(), depth);
    }
    std::vector<double> rates;
    for (int repeat = -1; repeat < plan.repeats; ++repeat) {
      std::vector<int32_t> next(ids.begin(), ids.begin() + batch);
      std::vector<Work> works;
      for (int i = 0; i < batch; ++i) {
        sequences[i].truncate(depth);
        works.push_back({&sequences[i], &next[i], 1, Score::Last, 0, nullptr, &source});
      }
      const int steps = repeat < 0 ? std::min(plan.steps, 8) : plan.steps;
      Clock clock;
      for (int step = 0; step < steps; ++step)
        engine.step(works,
                    [&](const Row &row) { next[row.work] = argmax(row.logits, engine.vocab()); });
      if (repeat >= 0)
        rates.push_back(double(batch) * steps / clock.ms() * 1000);
    }
    return rates;
  }

private:
  void feed(KvSequence &sequence, int tokens) {
    if (tokens > 0)
      engine.step({{&sequence, ids.data(), tokens, Score::Last, 0, nullptr, &source}},
                  [](const Row &) {});
  }
  void encode(KvSequence &memory, int tokens) {
    engine.encode({{&memory, ids.data(), tokens, Score::None}}, [](const Row &) {});
  }

  Engine &engine;
  const Plan &plan;
  KvSequence source;        // what steps attend to
  std::vector<int32_t> ids; // the same every time
};
} // namespace

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

static Json roundedAll(const std::vector<double> &values) {
  Json list = Json::array();
  for (double value : values)
    list.push_back(rounded(value));
  return list;
}

void runBench(const Invocation &invocation, const Arguments &arguments) {
  Plan plan;
  EngineOptions engineOptions;
  bool json = false;
  CLI::App app("Measures prompt and generation speed.", "bench");
  auto list = [&](const char *option, std::vector<int> &values, const char *help, int least) {
    app.add_option(option, values, help)
        ->delimiter(',')
        ->type_size(1)
        ->allow_extra_args(false)
        ->check(CLI::Range(least, 1 << 20))
        ->option_text("LIST");
  };
  list("-p", plan.prompts, "Prompt lengths; 0 for none (128,512)", 0);
  list("-d", plan.depths, "Cached tokens before generating (0,1024)", 0);
  list("-b", plan.batches, "Sequences generating together (1,8)", 1);
  app.add_option("-n", plan.steps, "Tokens to generate; 0 for none (128)")
      ->check(CLI::Range(0, 1 << 20))
      ->option_text("N");
  app.add_option("-r", plan.repeats, "Repeats (5)")->check(CLI::Range(1, 1000))->option_text("R");
  addThreadOptions(app, engineOptions.threads, engineOptions.pin);
  app.add_flag("--json", json, "Print one JSON object");
  parse(app, arguments);

  if (!chooseVariant(invocation.compiled).decode)
    plan.steps = 0;
  const int context = invocation.compiled.context;
  int longest = 0, deepest = 0, widest = 0;
  for (int prompt : plan.prompts)
    longest = std::max(longest, prompt);
  for (int depth : plan.depths)
    deepest = std::max(deepest, depth);
  for (int batch : plan.batches)
    widest = std::max(widest, batch);
  if (longest > context)
    refuse("bench -p {}: the context holds {} tokens", longest, context);
  if (plan.steps > 0 && deepest + plan.steps > context)
    refuse("bench -d {} -n {}: the context holds {} tokens", deepest, plan.steps, context);
  if (widest > context)
    refuse("bench -b {}: at most {} sequences", widest, context);
  engineOptions.cacheBlocks =
      std::max(KvPool::blocksFor(longest), widest * KvPool::blocksFor(deepest + plan.steps));
  engineOptions.memoryBlocks = KvPool::blocksFor(longest) + KvPool::blocksFor(sourceTokens);

  Program program(invocation.compiled, invocation.path, invocation.name);
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  const double loadMs = invocation.started.ms();
  Bench bench(engine, plan);
  Json prefill = Json::array(), decode = Json::array();
  double weightRate = 0; // bytes of weights read in a second; every step reads them all once
  for (int prompt : plan.prompts)
    if (prompt > 0) {
      std::vector<double> rates = bench.prefill(prompt);
      if (!json)
        print(fmt::format("prefill {:>6} tokens             {:>10.1f} tok/s\n", prompt,
                          median(rates)));
      prefill.push_back({{"tokens", prompt}, {"tok_s", roundedAll(rates)}});
    }
  for (int depth : plan.depths)
    for (int batch : plan.batches)
      if (plan.steps > 0) {
        std::vector<double> rates = bench.decode(depth, batch);
        weightRate =
            std::max(weightRate,
                     median(rates) / batch * static_cast<double>(invocation.compiled.weight_bytes));
        if (!json)
          print(fmt::format("decode  depth {:>6}, batch {:>3}    {:>10.1f} tok/s\n", depth, batch,
                            median(rates)));
        decode.push_back({{"depth", depth}, {"batch", batch}, {"tok_s", roundedAll(rates)}});
      }

  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const int64_t peak = int64_t(usage.ru_maxrss) * 1024;
  const int64_t weights = invocation.compiled.weight_bytes;
  if (json)
    return printJson({{"prefill", prefill},
                      {"decode", decode},
                      {"load_ms", rounded(loadMs)},
                      {"peak_rss_bytes", peak},
                      {"weight_bytes", weights},
                      {"weight_gb_s", rounded(weightRate / 1e9)}});
  print(fmt::format("{} threads, loaded in {:.1f} ms, peak {} MiB, weights {} MiB read at {:.1f} "
                    "GB/s\n",
                    engine.threads(), loadMs, peak >> 20, weights >> 20, weightRate / 1e9));
}

} // namespace tenon::rt

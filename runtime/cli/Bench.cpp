// OUT bench: prompt and generation speed, measured in this process.
//
//   prefill   tokens / time of one prompt, the last row scored
//   decode    batch * n / time of n greedy steps behind `depth` cached tokens; what a step reads of
//             weights and cache, against what all threads can read when they do nothing else
//             -d A:B gives the first sequence of a batch A, the last B, the others even steps
//             between
//
// --ops and --trace look into a few more steps behind each measurement.
//
// Of an encoder, alone or before a decoder, prefill is the encoding of the prompt. A decoder's
// steps then attend to a source of 128 tokens.
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/RowMath.h"
#include "runtime/Trace.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <sys/resource.h>

namespace tenon::rt {

namespace {
constexpr int sourceTokens = 128;

// The tokens cached before a batch generates: A in every sequence, or spread over them from A to B.
struct Depth {
  int first, last;

  // A sequence alone has what a batch has on average.
  int of(int sequence, int batch) const {
    return batch == 1 ? (first + last) / 2
                      : first + static_cast<int>(int64_t(last - first) * sequence / (batch - 1));
  }
  int deepest() const { return std::max(first, last); }
  std::string text() const {
    return first == last ? std::to_string(first) : fmt::format("{}:{}", first, last);
  }
};

// "A" or "A:B"; CLI11 reads an option's value by this.
std::istream &operator>>(std::istream &in, Depth &depth) {
  in >> depth.first;
  depth.last = depth.first;
  if (!in.eof() && in.peek() == ':')
    in.ignore() >> depth.last;
  return in;
}

// Of a value of -d, empty if there is nothing to refuse.
std::string refuseDepth(std::string &value) {
  std::istringstream in(value);
  Depth depth = {-1, -1};
  const bool read = in >> depth && in.peek() == EOF;
  const int least = std::min(depth.first, depth.last), most = depth.deepest();
  return read && least >= 0 && most <= 1 << 20 ? "" : value + " is not N or N:N, from 0 to 1048576";
}

struct Plan {
  std::vector<int> prompts = {128, 512}, batches = {1, 8};
  std::vector<Depth> depths = {{0, 0}, {1024, 1024}};
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

  // The steps of the last repeat are traced, and not counted, if `trace` is not null.
  std::vector<double> prefill(int tokens, Trace *trace) {
    std::vector<double> rates;
    for (int repeat = -1; repeat < plan.repeats + (trace != nullptr); ++repeat) { // one to warm up
      engine.traceInto(repeat == plan.repeats ? trace : nullptr);
      KvSequence sequence(engine.pool()), memory(engine.memoryPool());
      Clock clock;
      if (engine.hasMemory())
        encode(memory, tokens);
      else
        feed(sequence, tokens);
      if (repeat >= 0 && repeat < plan.repeats)
        rates.push_back(tokens / clock.ms() * 1000);
    }
    engine.traceInto(nullptr);
    return rates;
  }

  std::vector<double> decode(Depth depth, int batch, Trace *trace) {
    const tenon_draw best = {engine.vocab(), 0, 0, 0, 1, 0};
    std::vector<KvSequence> sequences;
    for (int i = 0; i < batch; ++i) { // each its own copy: a fork would be read from a warm cache
      sequences.emplace_back(engine.pool());
      feed(sequences.back(), depth.of(i, batch));
    }
    std::vector<double> rates;
    for (int repeat = -1; repeat < plan.repeats + (trace != nullptr); ++repeat) {
      engine.traceInto(repeat == plan.repeats ? trace : nullptr);
      std::vector<int32_t> next(ids.begin(), ids.begin() + batch);
      std::vector<Work> works;
      for (int i = 0; i < batch; ++i) {
        sequences[i].truncate(depth.of(i, batch));
        works.push_back({&sequences[i], &next[i], 1, Score::Last, 0, nullptr, &source, &best});
      }
      const bool counts = repeat >= 0 && repeat < plan.repeats;
      const int steps = counts ? plan.steps : std::min(plan.steps, 8);
      Clock clock;
      for (int step = 0; step < steps; ++step)
        engine.step(works, [&](const Row &row) {
          next[row.work] = row.drawn >= 0 ? row.drawn : argmax(row.logits, engine.vocab());
        });
      if (counts)
        rates.push_back(double(batch) * steps / clock.ms() * 1000);
    }
    engine.traceInto(nullptr);
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

// One line for each kernel, for a step:
//   gated_mlp   30 calls   0.912 ms   31.2 %   36.1 GB/s  92 % of memory   21.4 GFLOP/s
static void printKernels(const std::vector<KernelTime> &kernels, double streaming) {
  double total = 0;
  for (const KernelTime &kernel : kernels)
    total += kernel.seconds;
  for (const KernelTime &kernel : kernels) {
    const double seconds = std::max(kernel.seconds, 1e-12);
    std::string line = fmt::format("    {:<24} {:>4} calls {:>9.3f} ms {:>5.1f} %",
                                   kernel.kernel == "wait" ? "waiting for others" : kernel.kernel,
                                   kernel.calls, seconds * 1e3, 100 * seconds / total);
    if (kernel.bytes > 0)
      line += fmt::format(" {:>8.1f} GB/s {:>4.0f} % of memory", kernel.bytes / seconds / 1e9,
                          100 * kernel.bytes / seconds / streaming);
    if (kernel.flops > 0)
      line += fmt::format("{:>{}.1f} GFLOP/s", kernel.flops / seconds / 1e9,
                          kernel.bytes > 0 ? 10 : 38);
    print(line + "\n");
  }
}

static Json describeKernels(const std::vector<KernelTime> &kernels) {
  Json list = Json::array();
  for (const KernelTime &kernel : kernels)
    list.push_back({{"kernel", kernel.kernel},
                    {"calls", kernel.calls},
                    {"ms", kernel.seconds * 1e3},
                    {"bytes", kernel.bytes},
                    {"flops", kernel.flops}});
  return list;
}

namespace {
// What is printed, as lines at once or as one JSON object at the end.
class Report {
public:
  Report(Engine &engine, const tenon_compiled &compiled, bool json, bool operations)
      : engine(engine), compiled(compiled), json(json), operations(operations) {
    for (int i = 0; i < 5; ++i)
      streaming = std::max(streaming, weights() / engine.secondsToStreamWeights());
  }

  void prefill(int tokens, const std::vector<double> &rates,
               const std::vector<KernelTime> &kernels) {
    if (!json)
      print(
          fmt::format("prefill {:>9} tokens             {:>10.1f} tok/s\n", tokens, median(rates)));
    add(prefills, {{"tokens", tokens}, {"tok_s", roundedAll(rates)}}, kernels);
  }

  void decode(Depth depth, int batch, int steps, const std::vector<double> &rates,
              const std::vector<KernelTime> &kernels) {
    const double stepRate = median(rates) / batch;
    weightRate = std::max(weightRate, stepRate * weights());
    const double position = static_cast<double>(KvPool::positionBytes(compiled.cache));
    const double context = (depth.first + depth.last) / 2.0 + steps / 2.0; // on average
    const double bytes = weights() + position * batch * context;
    if (!json)
      print(fmt::format("decode  depth {:>9}, batch {:>3}    {:>10.1f} tok/s   memory: {:.1f} of "
                        "{:.1f} GB/s\n",
                        depth.text(), batch, median(rates), stepRate * bytes / 1e9,
                        streaming / 1e9));
    Json entry = {{"depth", depth.first}};
    if (depth.last != depth.first)
      entry["depth_last"] = depth.last;
    entry["batch"] = batch;
    entry["tok_s"] = roundedAll(rates);
    entry["gb_s"] = rounded(stepRate * bytes / 1e9);
    add(decodes, std::move(entry), kernels);
  }

  void end(double loadMs) {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const int64_t peak = int64_t(usage.ru_maxrss) * 1024;
    if (json)
      return printJson({{"prefill", prefills},
                        {"decode", decodes},
                        {"load_ms", rounded(loadMs)},
                        {"peak_rss_bytes", peak},
                        {"weight_bytes", compiled.weight_bytes},
                        {"weight_gb_s", rounded(weightRate / 1e9)},
                        {"stream_gb_s", rounded(streaming / 1e9)}});
    print(fmt::format("{} threads, loaded in {:.1f} ms, peak {} MiB, weights {} MiB read at {:.1f} "
                      "GB/s, memory-bound: {:.1f} of {:.1f} GB/s\n",
                      engine.machine().threads(), loadMs, peak >> 20, compiled.weight_bytes >> 20,
                      weightRate / 1e9, weightRate / 1e9, streaming / 1e9));
  }

private:
  double weights() const { return static_cast<double>(compiled.weight_bytes); }

  static Json roundedAll(const std::vector<double> &values) {
    Json list = Json::array();
    for (double value : values)
      list.push_back(rounded(value));
    return list;
  }

  void add(Json &list, Json entry, const std::vector<KernelTime> &kernels) {
    if (operations && json)
      entry["ops"] = describeKernels(kernels);
    else if (operations)
      printKernels(kernels, streaming);
    list.push_back(std::move(entry));
  }

  Engine &engine;
  const tenon_compiled &compiled;
  const bool json, operations;
  double streaming = 0;  // bytes that all threads read in a second
  double weightRate = 0; // the most bytes of weights of a second; every step reads all of them once
  Json prefills = Json::array(), decodes = Json::array();
};
} // namespace

void runBench(const Invocation &invocation, const Arguments &arguments) {
  Plan plan;
  EngineOptions engineOptions;
  bool json = false, operations = false;
  std::string traceFile;
  CLI::App app("Measures prompt and generation speed.", "bench");
  auto list = [&](const char *option, auto &values, const char *help, const CLI::Validator &check) {
    app.add_option(option, values, help)
        ->delimiter(',')
        ->type_size(1)
        ->allow_extra_args(false)
        ->check(check)
        ->option_text("LIST");
  };
  list("-p", plan.prompts, "Prompt lengths; 0 for none (128,512)", CLI::Range(0, 1 << 20));
  list("-d", plan.depths,
       "Cached tokens before generating (0,1024); A:B spreads a batch's from A to B",
       CLI::Validator(refuseDepth, ""));
  list("-b", plan.batches, "Sequences generating together (1,8)", CLI::Range(1, 1 << 20));
  app.add_option("-n", plan.steps, "Tokens to generate; 0 for none (128)")
      ->check(CLI::Range(0, 1 << 20))
      ->option_text("N");
  app.add_option("-r", plan.repeats, "Repeats (5)")->check(CLI::Range(1, 1000))->option_text("R");
  addMachineOptions(app, invocation, engineOptions);
  app.add_flag("--ops", operations, "Tell what each kernel takes");
  app.add_option("--trace", traceFile, "Write all stages of a few steps for Perfetto")
      ->option_text("F.json");
  app.add_flag("--json", json, "Print one JSON object");
  parse(app, arguments);

  if (!hasDecoder(invocation.compiled))
    plan.steps = 0;
  const int context = invocation.compiled.context;
  int longest = 0, deepest = 0, widest = 0;
  for (int prompt : plan.prompts)
    longest = std::max(longest, prompt);
  for (const Depth &depth : plan.depths)
    deepest = std::max(deepest, depth.deepest());
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
  Report report(engine, invocation.compiled, json, operations);
  std::ofstream traces;
  if (!traceFile.empty()) {
    traces.open(traceFile);
    if (!traces)
      refuse("{}: cannot be written", traceFile);
  }
  Trace trace;
  Trace *wanted = operations || traces.is_open() ? &trace : nullptr;
  for (int prompt : plan.prompts)
    if (prompt > 0) {
      const size_t known = trace.steps().size();
      std::vector<double> rates = bench.prefill(prompt, wanted);
      report.prefill(prompt, rates, sumByKernel(trace, known));
    }
  for (const Depth &depth : plan.depths)
    for (int batch : plan.batches)
      if (plan.steps > 0) {
        const size_t known = trace.steps().size();
        std::vector<double> rates = bench.decode(depth, batch, wanted);
        report.decode(depth, batch, plan.steps, rates, sumByKernel(trace, known));
      }
  if (traces.is_open() && !(traces << trace.toJson() << std::flush))
    refuse("{}: cannot be written", traceFile);
  report.end(loadMs);
}

} // namespace tenon::rt

// Programs as lists of launches on a GPU.
//
//   batch ─pinned─▶ device ─▶ launch, launch, ... (decode: one graph) ─▶ logits ─pinned─▶ host
//
// Weights are copied once, when the executable starts. Arena, workspace and the batch's arrays keep
// their addresses until a larger batch comes; a graph holds addresses, so it is made anew then.
#include "runtime/Error.h"
#include "runtime/Executor.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

namespace tenon::rt::cuda {

namespace {

constexpr int oldestCapability = 80;
constexpr int64_t stagingBytes = 16 << 20;     // of each of two buffers that weights pass through
constexpr int64_t plainSharedBytes = 48 << 10; // a kernel asks for more
constexpr int64_t highestGrid = 65535;
constexpr tenon_launches nothing = {0, nullptr};

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// The image that the device runs best.
const tenon_image &chooseImage(const tenon_device_code &code, const DeviceFacts &facts) {
  if (facts.capability < oldestCapability)
    throw Error(ExitMachine, fmt::format("{} is sm_{}; kernels need sm_{} or later", facts.name,
                                         facts.capability, oldestCapability));
  std::string there;
  for (int64_t i = 0; i < code.image_count; ++i) {
    const tenon_image &image = code.images[i];
    const bool sameMajor = image.capability / 10 == facts.capability / 10;
    if (image.capability <= facts.capability && (sameMajor || image.kind != TENON_IMAGE_CUBIN))
      return image;
    there += (there.empty() ? "" : ", ") + std::string(image.name);
  }
  throw Error(ExitMachine, fmt::format("{} is sm_{}; this executable has code for {}; compile with "
                                       "--mcpu sm_{}",
                                       facts.name, facts.capability, there, facts.capability));
}

class CudaExecutor : public Executor {
public:
  CudaExecutor(const tenon_compiled &compiled, const Artefact &artefact,
               const ExecutorOptions &options)
      : compiled(compiled), code(*compiled.device), device(options.device), api(device.driver()) {
    const tenon_image &image = chooseImage(code, device.facts());
    const bool wantsLibrary = usesLibrary() && !CublasLt::isUnwanted();
    checkMemory(options, wantsLibrary);
    if (wantsLibrary)
      library = std::make_unique<CublasLt>(device);
    api.check(api.loadModule(&module, image.bytes), "load the kernels");
    beginsEarly = mayBeginEarly(image, device.facts(), api.version());
    for (int64_t k = 0; k < code.kernel_count; ++k)
      functions.push_back(find(code.kernels[k]));
    uploadWeights(artefact.weights());
  }

  ~CudaExecutor() override {
    forgetGraphs();
    if (module)
      api.unloadModule(module);
  }

  std::string name() const override { return device.facts().name; }
  int threads() const override { return 1; }
  int waveTokens() const override { return TENON_WAVE_TOKENS; }
  // Few rows and many take different kernels, so that only whole waves give the same bits.
  int prefixUnit() const override { return TENON_WAVE_TOKENS; }

  std::unique_ptr<KvMemory> reserve(int64_t bytes, const char *what) override {
    return std::make_unique<DeviceMemory>(device, bytes, what);
  }

  bool drawsTokens() const override { return code.sample.count > 0; }

  Results run(Phase phase, const tenon_batch &batch, const tenon_draw *draws, const KvPool &cache,
              const KvPool &memory, Trace *trace) override {
    makeRoom(batch, draws != nullptr);
    uploadBatch(batch, draws);
    places = {&cache, &memory, batch.tokens, batch.scored};
    const tenon_launches &launches = phase == Phase::Encode    ? code.encode
                                     : phase == Phase::Prefill ? code.prefill
                                                               : code.decode;
    const tenon_launches &sample = draws ? code.sample : nothing;
    if (trace) {
      runTraced(launches, phase, batch, *trace);
      launchAll(sample);
    } else if (phase == Phase::Decode) {
      runGraph(launches, sample);
    } else {
      launchAll(launches);
      launchAll(sample);
    }
    return download(phase, draws != nullptr);
  }

  double secondsToStreamWeights() override {
    // A copy reads and writes, each as fast as the other.
    const int64_t bytes = std::min<int64_t>(weights.size(), 256 << 20);
    DeviceMemory to(device, bytes, "a measurement");
    device.wait();
    const auto start = std::chrono::steady_clock::now();
    api.check(api.copy(to.base(), weights.base(), static_cast<size_t>(bytes), device.stream()),
              "copy");
    device.wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return seconds.count() / 2 * static_cast<double>(weights.size()) / static_cast<double>(bytes);
  }

private:
  // What addresses of a launch hang on.
  struct Places {
    const KvPool *cache, *memory;
    int64_t tokens, scored;
  };

  //===--------------------------------------------------------------------===//
  // At the start
  //===--------------------------------------------------------------------===//

  // Everything is asked for before anything is taken.
  void checkMemory(const ExecutorOptions &options, bool wantsLibrary) {
    const int tokens = std::min(TENON_WAVE_TOKENS, compiled.context);
    const int64_t activations = arenaBytes(tokens, waveScored) +
                                workspaceBytes(tokens, waveScored, wantsLibrary) +
                                (wantsLibrary ? CublasLt::workspaceBytes : 0);
    const int64_t needed = compiled.weight_bytes + options.poolBytes + activations;
    const int64_t free = device.freeBytes();
    if (needed > free)
      throw Error(ExitMachine,
                  fmt::format("{}: {:.0f} MiB are needed (weights {:.0f}, KV cache {:.0f}, "
                              "activations {:.0f}), {:.0f} MiB are free; a smaller --context at "
                              "compile time needs less",
                              device.facts().name, mebibytes(needed),
                              mebibytes(compiled.weight_bytes), mebibytes(options.poolBytes),
                              mebibytes(activations), mebibytes(free)));
  }

  bool usesLibrary() const {
    return std::any_of(code.kernels, code.kernels + code.kernel_count,
                       [](const tenon_device_kernel &kernel) { return kernel.product.cols > 0; });
  }

  // Null for a product.
  Function find(const tenon_device_kernel &kernel) {
    Function function = nullptr;
    if (kernel.product.cols > 0)
      return function;
    api.check(api.getFunction(&function, module, kernel.symbol), "find a kernel");
    if (kernel.grid.shared_bytes > plainSharedBytes)
      api.check(api.setAttribute(function, functionSharedBytes,
                                 static_cast<int>(kernel.grid.shared_bytes)),
                "give a kernel its shared memory");
    return function;
  }

  // Through two pinned buffers: one is filled while the other is sent.
  void uploadWeights(const char *from) {
    weights = DeviceMemory(device, compiled.weight_bytes, "the weights");
    PinnedMemory buffers[2];
    for (int64_t at = 0, i = 0; at < compiled.weight_bytes; at += stagingBytes, ++i) {
      PinnedMemory &buffer = buffers[i % 2];
      if (i % 2 == 0)
        device.wait();
      if (!buffer.data())
        buffer = PinnedMemory(device, stagingBytes);
      const auto bytes = static_cast<size_t>(std::min(stagingBytes, compiled.weight_bytes - at));
      std::memcpy(buffer.data(), from + at, bytes);
      api.check(api.copyIn(weights.base() + at, buffer.data(), bytes, device.stream()),
                "copy the weights");
    }
    device.wait();
  }

  //===--------------------------------------------------------------------===//
  // The batch
  //===--------------------------------------------------------------------===//

  int64_t arenaBytes(int64_t tokens, int64_t scored) const {
    return tokens * compiled.arena_token_bytes + scored * compiled.arena_scored_bytes;
  }

  int64_t workspaceBytes(int64_t tokens, int64_t scored, bool hasLibrary) const {
    int64_t bytes = 0;
    for (int64_t k = 0; k < code.kernel_count; ++k)
      if (const tenon_grid &grid = code.kernels[k].grid; hasLibrary || !grid.for_library)
        bytes = std::max(bytes, tenon_workspace_bytes(&grid, grid.rows ? scored : tokens));
    return bytes;
  }

  void grow(DeviceMemory &memory, int64_t bytes, const char *what) {
    if (bytes <= memory.size())
      return;
    forgetGraphs();
    memory = DeviceMemory(); // the old one goes first
    memory = DeviceMemory(device, aligned(bytes), what);
  }

  void makeRoom(const tenon_batch &batch, bool draws) {
    grow(arena, arenaBytes(batch.tokens, batch.scored), "activations");
    grow(workspace, workspaceBytes(batch.tokens, batch.scored, library != nullptr), "activations");
    const int64_t values = batch.scored * (draws ? 1 : int64_t(compiled.vocab));
    if (const int64_t bytes = values * int64_t(sizeof(float)); bytes > answer.size())
      answer = PinnedMemory(device, aligned(bytes));
  }

  // The struct, draws, room for what is drawn, then the batch's arrays; in one copy. Only the
  // places of arrays hang on how long sequences are, and no launch of a graph has those.
  void uploadBatch(const tenon_batch &batch, const tenon_draw *draws) {
    struct Array {
      const int32_t *tenon_batch::*field;
      int64_t count;
    };
    const int64_t T = batch.tokens, S = batch.sequences;
    const Array arrays[] = {{&tenon_batch::ids, T},
                            {&tenon_batch::positions, T},
                            {&tenon_batch::sequence_of, T},
                            {&tenon_batch::starts, S + 1},
                            {&tenon_batch::lengths, S},
                            {&tenon_batch::block_table, S * batch.max_blocks},
                            {&tenon_batch::scored_rows, batch.scored},
                            {&tenon_batch::types, compiled.token_types > 0 ? T : 0},
                            {&tenon_batch::memory_lengths, batch.memory_max_blocks > 0 ? S : 0},
                            {&tenon_batch::memory_table, S * batch.memory_max_blocks}};
    const int64_t drawBytes = batch.scored * int64_t(sizeof *draws);
    drawsAt = aligned(sizeof batch);
    drawnAt = drawsAt + aligned(drawBytes);
    const int64_t arraysAt = drawnAt + aligned(batch.scored * int64_t(sizeof(int32_t)));
    int64_t bytes = arraysAt;
    for (const Array &array : arrays)
      bytes += aligned(array.count * int64_t(sizeof(int32_t)));
    if (bytes > staged.size()) {
      forgetGraphs();
      staged = PinnedMemory(device, 2 * bytes);
      inputs = DeviceMemory();
      inputs = DeviceMemory(device, 2 * bytes, "a batch");
    }
    tenon_batch there = batch;
    if (draws)
      std::memcpy(staged.data() + drawsAt, draws, static_cast<size_t>(drawBytes));
    int64_t at = arraysAt;
    for (const Array &array : arrays) {
      const auto size = static_cast<size_t>(array.count) * sizeof(int32_t);
      if (size > 0)
        std::memcpy(staged.data() + at, batch.*array.field, size);
      there.*array.field = reinterpret_cast<const int32_t *>(inputs.base() + at);
      at += aligned(static_cast<int64_t>(size));
    }
    std::memcpy(staged.data(), &there, sizeof there);
    api.check(api.copyIn(inputs.base(), staged.data(), static_cast<size_t>(bytes), device.stream()),
              "copy a batch");
  }

  //===--------------------------------------------------------------------===//
  // Launches
  //===--------------------------------------------------------------------===//

  void *resolve(const tenon_operand &operand) const {
    char *base = nullptr;
    int64_t scaled = 0;
    switch (operand.place) {
    case TENON_AT_TOKENS:
      base = arena.base();
      scaled = places.tokens * operand.scale;
      break;
    case TENON_AT_SCORED:
      base = arena.base() + places.tokens * compiled.arena_token_bytes;
      scaled = places.scored * operand.scale;
      break;
    case TENON_AT_WEIGHTS:
      base = weights.base();
      break;
    case TENON_AT_CACHE:
      base = places.cache->base();
      scaled = places.cache->blocks() * operand.scale;
      break;
    case TENON_AT_DRAWS:
      base = inputs.base() + drawsAt;
      break;
    case TENON_AT_DRAWN:
      base = inputs.base() + drawnAt;
      break;
    default:
      base = places.memory->base();
      scaled = places.memory->blocks() * operand.scale;
      break;
    }
    return base + scaled + operand.offset;
  }

  void launch(const tenon_launch &launch) {
    const tenon_device_kernel &kernel = code.kernels[launch.kernel];
    const tenon_grid &grid = kernel.grid;
    const int64_t rows = grid.rows ? places.scored : places.tokens;
    if (!tenon_is_launched(&grid, rows, library != nullptr))
      return;
    if (kernel.product.cols > 0)
      return multiply(kernel.product, launch, rows);
    const int64_t high = tenon_grid_height(&grid, rows);
    if (high > highestGrid)
      refuse("{} rows in one batch are more than the device takes at once", rows);
    tenon_arguments arguments = {};
    for (int64_t i = 0; i < launch.operand_count; ++i)
      arguments.io[i] = resolve(launch.operands[i]);
    arguments.batch = reinterpret_cast<const tenon_batch *>(inputs.base());
    arguments.cache_blocks = places.cache->blocks();
    arguments.memory_blocks = places.memory->blocks();
    arguments.workspace = workspace.base();
    void *parameters[] = {&arguments};
    const LaunchAttribute early = {launchBeginsEarly, 0, 1, {}};
    const LaunchConfig config = {static_cast<unsigned>(grid.columns),
                                 static_cast<unsigned>(high),
                                 1,
                                 static_cast<unsigned>(grid.threads),
                                 1,
                                 1,
                                 static_cast<unsigned>(grid.shared_bytes),
                                 device.stream(),
                                 &early,
                                 beginsEarly ? 1U : 0U};
    api.check(api.launch(&config, functions[launch.kernel], parameters, nullptr), kernel.symbol);
  }

  void multiply(const tenon_product &product, const tenon_launch &launch, int64_t rows) {
    auto operand = [&](int32_t i) { return static_cast<char *>(resolve(launch.operands[i])); };
    char *x = workspace.base();
    library->multiply(
        {static_cast<tenon_dtype>(product.dtype), rows, product.cols, product.depth, x,
         operand(product.weight), product.add < 0 ? nullptr : operand(product.add),
         product.add_stride,
         product.out < 0 ? x + tenon_product_at(rows, product.depth) : operand(product.out),
         product.out_stride});
  }

  void launchAll(const tenon_launches &launches) {
    for (int64_t i = 0; i < launches.count; ++i)
      launch(launches.list[i]);
  }

  // A step of so many sequences becomes a graph when it comes for the second time.
  void runGraph(const tenon_launches &launches, const tenon_launches &sample) {
    auto [entry, isNew] = graphs.try_emplace({places.tokens, sample.count}, nullptr);
    auto launchBoth = [&] {
      launchAll(launches);
      launchAll(sample);
    };
    if (isNew)
      return launchBoth();
    if (!entry->second) {
      Graph graph = nullptr;
      api.check(api.beginCapture(device.stream(), relaxedCapture), "record a graph");
      launchBoth();
      api.check(api.endCapture(device.stream(), &graph), "record a graph");
      const Result made = api.instantiate(&entry->second, graph, 0);
      api.destroyGraph(graph);
      api.check(made, "make a graph");
    }
    api.check(api.launchGraph(entry->second, device.stream()), "launch a graph");
  }

  void forgetGraphs() {
    for (const auto &[step, graph] : graphs)
      if (graph)
        api.destroyExec(graph);
    graphs.clear();
  }

  // With an event behind each stage.
  void runTraced(const tenon_launches &launches, Phase phase, const tenon_batch &batch,
                 Trace &trace) {
    trace.beginStep(stagesOf(compiled, phase), batch, 1);
    const Trace::Clock::time_point start = Trace::Clock::now();
    std::vector<Event> events;
    auto mark = [&] {
      api.check(api.createEvent(&events.emplace_back(nullptr), 0), "make an event");
      api.check(api.record(events.back(), device.stream()), "record an event");
    };
    std::vector<int32_t> stages;
    mark();
    for (int64_t i = 0; i < launches.count; ++i) {
      launch(launches.list[i]);
      if (i + 1 < launches.count && launches.list[i + 1].stage == launches.list[i].stage)
        continue;
      mark();
      stages.push_back(launches.list[i].stage);
    }
    device.wait();
    std::vector<Trace::Event> seen;
    auto after = [&](size_t event) {
      float milliseconds = 0;
      api.elapsed(&milliseconds, events[0], events[event]);
      return start + std::chrono::duration_cast<Trace::Clock::duration>(
                         std::chrono::duration<double, std::milli>(milliseconds));
    };
    for (size_t i = 0; i < stages.size(); ++i)
      seen.push_back({stages[i], after(i), after(i + 1)});
    for (Event event : events)
      api.destroyEvent(event);
    trace.add(0, std::move(seen));
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  Results download(Phase phase, bool draws) {
    Results results = {};
    const bool hasLogits = phase != Phase::Encode || compiled.memory.layers == 0;
    if (draws) {
      const auto bytes = static_cast<size_t>(places.scored) * sizeof(int32_t);
      api.check(api.copyOut(answer.data(), inputs.base() + drawnAt, bytes, device.stream()),
                "copy tokens");
      results.drawn = reinterpret_cast<const int32_t *>(answer.data());
    } else if (hasLogits && places.scored > 0) {
      const Address from = arena.base() + places.tokens * compiled.arena_token_bytes +
                           places.scored * compiled.logits_offset;
      const auto bytes = static_cast<size_t>(places.scored * compiled.vocab) * sizeof(float);
      api.check(api.copyOut(answer.data(), from, bytes, device.stream()), "copy the logits");
      results.logits = reinterpret_cast<const float *>(answer.data());
    }
    const Hiddens wanted = hiddensOf(compiled, phase);
    hiddens.resize(static_cast<size_t>(wanted.count));
    for (int64_t h = 0; h < wanted.count; ++h) {
      std::vector<float> &rows = hiddens[static_cast<size_t>(h)];
      rows.resize(static_cast<size_t>(places.tokens * wanted.list[h].width));
      const int64_t offset = places.tokens * wanted.list[h].offset;
      api.check(api.copyOut(rows.data(), arena.base() + offset, rows.size() * sizeof(float),
                            device.stream()),
                "copy hidden states");
      results.hiddens.push_back(rows.data());
    }
    device.wait();
    return results;
  }

  const tenon_compiled &compiled;
  const tenon_device_code &code;
  Device device;
  const Driver &api;
  std::unique_ptr<CublasLt> library; // null: kernels multiply all
  Module module = nullptr;
  std::vector<Function> functions; // of each tenon_device_kernel
  bool beginsEarly = false;        // a launch, while the one before ends
  DeviceMemory weights, arena, workspace, inputs;
  PinnedMemory staged, answer; // the batch on its way in, the logits on their way out
  Places places = {};
  int64_t drawsAt = 0, drawnAt = 0; // in `inputs`
  // Of @decode, by tokens and launches that sample; null: seen once.
  std::map<std::pair<int64_t, int64_t>, GraphExec> graphs;
  std::vector<std::vector<float>> hiddens;
};

} // namespace

static std::unique_ptr<Executor> make(const tenon_compiled &compiled, const Artefact &artefact,
                                      const ExecutorOptions &options) {
  return std::make_unique<CudaExecutor>(compiled, artefact, options);
}

// What the generated object refers to.
extern "C" const DeviceRuntime cudaRuntime __asm__("tenon_cuda_runtime");
const DeviceRuntime cudaRuntime = {make, listDevices};

} // namespace tenon::rt::cuda

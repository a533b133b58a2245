// tenon.h over the runtime. No exception leaves this file.
#include "runtime/tenon.h"

#include "runtime/Compiled.h"
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Generate.h"
#include "runtime/Program.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <memory>

using namespace tenon::rt;

struct tenon_model {
  tenon_model(const std::string &path, const EngineOptions &options)
      : program(tenonCompiled, path, path), engine(tenonCompiled, program.artefact(), options),
        prefixes(engine) {}
  Program program;
  Engine engine;
  PrefixCache prefixes; // of the prompts that were generated from
};

static thread_local std::string lastError;

// Runs `body`; on failure notes the message and returns -1.
template <typename Body> static auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception &error) {
    lastError = error.what();
  } catch (...) {
    lastError = "unknown failure";
  }
  return -1;
}

static std::vector<int32_t> idsOf(const int32_t *ids, int64_t count) {
  if (count < 0 || (count > 0 && !ids))
    refuse("{} token ids cannot be read", count);
  return std::vector<int32_t>(ids, ids + count);
}

int tenon_open(uint32_t version, const char *path, const tenon_open_options *options,
               tenon_model **model) {
  return guarded([&] {
    if (version != TENON_API_VERSION)
      refuse("this library speaks tenon.h version {}, the caller {}", TENON_API_VERSION, version);
    std::string file = path ? path : "";
    Dl_info info;
    if (!path && dladdr(reinterpret_cast<void *>(&tenon_open), &info) && info.dli_fname)
      file = info.dli_fname;
    EngineOptions engineOptions;
    if (options) {
      engineOptions.threads = options->threads;
      engineOptions.pin = options->pin != 0;
    }
    // One sequence of the whole context, and as much again of earlier prompts.
    engineOptions.cacheBlocks = 2 * KvPool::blocksFor(tenonCompiled.context);
    *model = std::make_unique<tenon_model>(file, engineOptions).release();
    return 0;
  });
}

void tenon_close(tenon_model *model) { delete model; }

const char *tenon_last_error(void) { return lastError.c_str(); }

const char *tenon_info(const tenon_model *model) { return model->program.meta().json.c_str(); }
int32_t tenon_vocab(const tenon_model *model) { return model->engine.vocab(); }
int32_t tenon_context(const tenon_model *model) { return model->engine.context(); }

int64_t tenon_tokenize(tenon_model *model, const char *text, int64_t bytes, int32_t *ids,
                       int64_t capacity) {
  return guarded([&]() -> int64_t {
    std::vector<int32_t> all =
        model->program.tokenizer().encodeIds({text, static_cast<size_t>(bytes)});
    int64_t count = static_cast<int64_t>(all.size());
    if (int64_t written = std::min(count, capacity); written > 0)
      std::copy_n(all.begin(), written, ids);
    return count;
  });
}

int64_t tenon_detokenize(tenon_model *model, const int32_t *ids, int64_t count, char *text,
                         int64_t capacity) {
  return guarded([&]() -> int64_t {
    std::string all = model->program.tokenizer().decode(idsOf(ids, count));
    int64_t bytes = static_cast<int64_t>(all.size());
    if (int64_t written = std::min(bytes, capacity); written > 0)
      std::memcpy(text, all.data(), static_cast<size_t>(written));
    return bytes;
  });
}

int64_t tenon_generate(tenon_model *model, const int32_t *ids, int64_t count,
                       const tenon_generate_options *given, tenon_on_token *onToken, void *user) {
  return guarded([&]() -> int64_t {
    GenerateOptions options;
    if (given) {
      if (given->max_tokens > 0)
        options.maxTokens = given->max_tokens;
      options.ignoreEos = given->ignore_eos != 0;
      options.sampling.temperature = given->temperature;
      options.sampling.topK = given->top_k;
      options.sampling.topP = given->top_p == 0 ? 1 : given->top_p;
      options.sampling.minP = given->min_p;
      if (given->seeded)
        options.sampling.seed = given->seed;
      for (int64_t i = 0; i < given->stop_count; ++i)
        options.stop.push_back(given->stop[i]);
    }
    Generation result = generate(
        model->program, model->engine, idsOf(ids, count), options,
        [&](int32_t token, std::string_view text) {
          return !onToken ||
                 onToken(user, token, text.data(), static_cast<int64_t>(text.size())) == 0;
        },
        &model->prefixes);
    return static_cast<int64_t>(result.ids.size());
  });
}

int tenon_logits(tenon_model *model, const int32_t *ids, int64_t count, float *logits) {
  return guarded([&] {
    std::vector<int32_t> all = idsOf(ids, count);
    Engine &engine = model->engine;
    if (engine.hasMemory())
      refuse("tenon_logits: an encoder-decoder reads two texts; tenon_generate does");
    if (count > engine.context())
      refuse("{} tokens, the context holds {}", count, engine.context());
    model->prefixes.makeRoom(KvPool::blocksFor(count));
    KvSequence sequence(engine.pool());
    engine.step(
        {{&sequence, all.data(), static_cast<int>(count), Score::All}}, [&](const Row &row) {
          std::copy_n(row.logits, engine.vocab(), logits + int64_t(row.token) * engine.vocab());
        });
    return 0;
  });
}

#include "frontend/WeightsFile.h"
#include "frontend/Extensions.h"
#include "frontend/tokenizer/BuildTokenizer.h"
#include "frontend/weights/Gguf.h"
#include "frontend/weights/OpenWeights.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace tenon {

// LLVM's SHA-256 reads about 400 MB a second.
static constexpr uint64_t maxVerifiedBytes = uint64_t(1) << 30;

static std::string join(StringRef directory, StringRef file) {
  llvm::SmallString<128> result;
  if (path::is_relative(file))
    result = directory;
  path::append(result, file);
  return result.str().str();
}

std::string getCacheFolder() {
  auto variable = [](const char *name) {
    return StringRef(std::getenv(name) ? std::getenv(name) : "");
  };
  if (StringRef cache = variable("TENON_CACHE"); !cache.empty())
    return cache.str();
  if (StringRef cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return join(cache, "tenon");
  return join(variable("HOME"), ".cache/tenon");
}

// A tokenizer.json, or a .gguf file for its tokenizer alone.
llvm::Expected<std::vector<uint8_t>> buildTokenizer(StringRef file, StringRef models) {
  if (path::extension(file) != ".gguf")
    return buildTokenizerFromJson(file);
  llvm::Expected<std::unique_ptr<GgufFile>> gguf = GgufFile::open(file);
  if (!gguf)
    return gguf.takeError();
  return buildTokenizerFromGguf(**gguf, join(models, "tokenizers.yaml"));
}

// `weights.file` where it exists.
static llvm::Expected<std::string> findWeights(Description &description) {
  const std::string &name = *description.weightsFile.asString();
  std::string beside = join(description.directory, name), cache = join(getCacheFolder(), "models");
  for (const std::string &candidate : {beside, join(cache, name)}) {
    description.files.push_back(candidate);
    if (fs::exists(candidate))
      return candidate;
  }
  std::string from =
      description.weightsFrom.empty() ? "" : "; get it from " + description.weightsFrom;
  return failAt(description.weightsFile.place, "weights '" + name +
                                                   "' are neither beside this file nor in " +
                                                   cache + from + ", or pass --weights PATH");
}

// "DIGEST SIZE MTIME", which scripts/install-deps.sh writes beside the models that it fetches.
static bool isStamped(StringRef file, const fs::file_status &status, StringRef digest) {
  auto stamp = llvm::MemoryBuffer::getFile(file + ".verified");
  int64_t seconds = llvm::sys::toTimeT(status.getLastModificationTime());
  return stamp &&
         (*stamp)->getBuffer().trim() ==
             (digest + " " + llvm::Twine(status.getSize()) + " " + llvm::Twine(seconds)).str();
}

static llvm::Error verifyDigest(StringRef file, StringRef digest) {
  fs::file_status status;
  if (std::error_code error = fs::status(file, status))
    return failAt(Place::inFile(file), "cannot read: " + error.message());
  if (status.type() != fs::file_type::regular_file || status.getSize() > maxVerifiedBytes ||
      isStamped(file, status, digest))
    return llvm::Error::success();
  return checkSha256(file, digest);
}

// Up to 64 of them; none of a directory.
static std::string firstBytes(StringRef file) {
  if (!fs::is_regular_file(file))
    return "";
  auto start = llvm::MemoryBuffer::getFileSlice(file, 64, 0);
  return start ? (*start)->getBuffer().str() : "";
}

llvm::Expected<WeightsFile> openWeightsOf(Description &description, const ModelOptions &options) {
  WeightsFile weights;
  if (!options.needWeights)
    return weights;
  StringRef given = options.weights;
  if (given.consume_front("random:")) {
    uint64_t seed;
    if (given.getAsInteger(10, seed))
      return failAt(Place::inFile("--weights " + options.weights),
                    "the seed must be an integer from 0");
    weights.randomSeed = seed;
    return weights;
  }
  if (!given.empty()) {
    weights.path = given.str();
  } else if (description.opened) {
    weights.path = *description.weightsFile.asString();
    weights.source = std::move(description.opened);
    return weights;
  } else if (description.weightsFile.isNull()) {
    return failAt(description.place,
                  "'weights' is missing; accepted: weights: {file: FILE}, or --weights PATH or "
                  "--weights random:SEED");
  } else {
    llvm::Expected<std::string> file = findWeights(description);
    if (!file)
      return file.takeError();
    weights.path = *file;
    if (!description.weightsSha256.empty())
      if (llvm::Error error = verifyDigest(weights.path, description.weightsSha256))
        return error;
  }
  for (const WeightFormat &format : getWeightFormats())
    if (format.accepts(firstBytes(weights.path))) {
      llvm::Expected<std::unique_ptr<WeightSource>> source = format.open(weights.path);
      if (!source)
        return source.takeError();
      weights.source = std::move(*source);
      return weights;
    }
  llvm::Expected<std::unique_ptr<StoredWeights>> source = openWeights(weights.path);
  if (!source)
    return source.takeError();
  weights.source = std::move(*source);
  return weights;
}

bool WeightsFile::isGguf() const { return dynamic_cast<const GgufFile *>(source.get()); }

std::vector<std::string> WeightsFile::list() const {
  if (path.empty())
    return {};
  if (!fs::is_directory(path))
    return {path};
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    StringRef extension = path::extension(it->path());
    if (extension == ".safetensors" || extension == ".json")
      files.push_back(it->path());
  }
  return files;
}

llvm::Expected<std::vector<uint8_t>> buildTokenizerOf(Description &description,
                                                      const WeightsFile &weights,
                                                      const ModelOptions &options) {
  if (description.tokenizer.isNull() || !options.needWeights)
    return std::vector<uint8_t>();
  const std::string &from = *description.tokenizer.asString();
  std::string pipelines = join(options.modelsDirectory, "tokenizers.yaml");
  description.files.push_back(pipelines);
  if (from != "weights") {
    std::string file = join(description.directory, from);
    description.files.push_back(file);
    return buildTokenizer(file, options.modelsDirectory);
  }
  if (weights.randomSeed)
    return std::vector<uint8_t>();
  if (const auto *gguf = dynamic_cast<const GgufFile *>(weights.source.get()))
    return buildTokenizerFromGguf(*gguf, pipelines);
  StringRef directory =
      fs::is_directory(weights.path) ? StringRef(weights.path) : path::parent_path(weights.path);
  std::string beside = join(directory, "tokenizer.json");
  description.files.push_back(beside);
  if (!fs::exists(beside))
    return failAt(description.tokenizer.place,
                  "the weights come without a tokenizer.json; accepted: tokenizer: {from: FILE}");
  return buildTokenizerFromJson(beside);
}

} // namespace tenon

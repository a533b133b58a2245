#include "Support.h"
#include "runtime/Safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace conformance {

namespace {
struct Folder {
  std::string path = "/tmp/tenon-conformance-XXXXXX";
  Folder() {
    if (!mkdtemp(path.data()))
      abort();
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
} // namespace

std::string scratch(const std::string &name) {
  static Folder folder;
  return folder.path + "/" + name;
}

static std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Result run(const std::string &program, const Arguments &arguments) {
  const std::string out = scratch("stdout"), err = scratch("stderr");
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), readFile(out), readFile(err),
          seconds.count()};
}

nlohmann::json runJson(const std::string &program, const Arguments &arguments) {
  const Result result = run(program, arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << result.out;
  return json;
}

void expectRefused(const Result &result, int code, const std::string &part) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  std::istringstream lines(result.err);
  int count = 0;
  for (std::string line; std::getline(lines, line);)
    count += line.rfind("[", 0) != 0; // "[ 0.00 s] reading …"
  EXPECT_EQ(count, 1) << result.err;
}

std::string compile(const std::string &model, const Arguments &options) {
  static std::map<std::pair<std::string, Arguments>, std::string> done;
  auto [entry, isNew] = done.try_emplace({model, options});
  if (!isNew)
    return entry->second;
  const std::string path = scratch("model" + std::to_string(done.size()));
  Arguments arguments = {"compile", model, "-o", path};
  arguments.insert(arguments.end(), options.begin(), options.end());
  if (std::find(options.begin(), options.end(), "cuda") != options.end()) {
    arguments.insert(arguments.end(), {"--mcpu", "emulator"});
    setenv("TENON_CUDA_DRIVER", TENON_EMULATED_DRIVER, 1);
    // With this instrumentation the emulator sees every access, and so finds data races.
    setenv("TENON_EMULATOR_FLAGS", "-fsanitize=thread --param=tsan-instrument-func-entry-exit=0",
           1);
  }
  const Result result = run(compiler, arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  if (result.code == 0)
    entry->second = path;
  return entry->second;
}

std::string folderOf(const std::string &model) { return oracle + "tiny/" + model; }

std::vector<std::string> listModels(const std::string &kind) {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(oracle + "tiny"))
    if (entry.is_directory() &&
        readJson(entry.path().string() + "/golden.json").value("kind", "") == kind)
      names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

Tensors goldenOf(const std::string &model) {
  return readTensors(folderOf(model) + "/golden.safetensors");
}

nlohmann::json readJson(const std::string &path) {
  nlohmann::json json = nlohmann::json::parse(readFile(path), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path;
  return json;
}

template <typename T> static std::vector<double> toDoubles(const tenon::rt::Tensor &tensor) {
  std::vector<T> values(tensor.elements);
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

Tensors readTensors(const std::string &path) {
  Tensors tensors;
  const tenon::rt::SafetensorsFile file(path);
  for (const tenon::rt::Tensor &tensor : file.tensors())
    tensors[tensor.name] = {tensor.shape, tensor.dtype == "I64"   ? toDoubles<int64_t>(tensor)
                                          : tensor.dtype == "I32" ? toDoubles<int32_t>(tensor)
                                                                  : toDoubles<float>(tensor)};
  return tensors;
}

std::vector<int64_t> generate(const std::string &executable, const std::vector<int64_t> &prompt,
                              size_t count) {
  const nlohmann::json json =
      runJson(executable, {"generate", "--ids", join(prompt), "-n", std::to_string(count),
                           "--ignore-eos", "--json"});
  return json.value("ids", std::vector<int64_t>());
}

int64_t Batch::columns() const {
  size_t columns = 0;
  for (const std::vector<int64_t> &row : rows)
    columns = std::max(columns, row.size());
  return static_cast<int64_t>(columns);
}

int64_t Batch::first(size_t row) const {
  return padding == Left ? columns() - static_cast<int64_t>(rows[row].size()) : 0;
}

void writeTensors(const std::string &path, const Tensors &tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::vector<int64_t> data;
  for (const auto &[name, tensor] : tensors) {
    const size_t begin = data.size() * sizeof(int64_t);
    data.insert(data.end(), tensor.values.begin(), tensor.values.end());
    header[name] = {{"dtype", "I64"},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, data.size() * sizeof(int64_t)}}};
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), sizeof length);
  file << text;
  file.write(reinterpret_cast<const char *>(data.data()),
             static_cast<std::streamsize>(data.size() * sizeof(int64_t)));
}

Tensors runInputs(const std::string &executable, const Tensors &inputs, const Arguments &options) {
  const std::string input = scratch("in.safetensors"), output = scratch("out.safetensors");
  writeTensors(input, inputs);
  std::filesystem::remove(output);
  Arguments arguments = {"logits", "--input", input, "--output", output};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Result result = run(executable, arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.code == 0 ? readTensors(output) : Tensors();
}

Tensors runLogits(const std::string &executable, const Batch &batch, const Arguments &options) {
  const int64_t rows = static_cast<int64_t>(batch.rows.size()), columns = batch.columns();
  const double filler = 3; // a token like any other: padding must not be recognised by its id
  Tensor ids = {{rows, columns}, std::vector<double>(rows * columns, filler)}, mask = ids;
  std::fill(mask.values.begin(), mask.values.end(), 0);
  for (size_t row = 0; row < batch.rows.size(); ++row) {
    const int64_t at = static_cast<int64_t>(row) * columns + batch.first(row);
    std::copy(batch.rows[row].begin(), batch.rows[row].end(), ids.values.begin() + at);
    std::fill_n(mask.values.begin() + at, batch.rows[row].size(), 1);
  }
  return runInputs(executable, {{"input_ids", ids}, {"attention_mask", mask}}, options);
}

Difference compare(const std::vector<double> &values, const std::vector<double> &golden) {
  const Difference infinite = {INFINITY, INFINITY};
  if (values.empty() || values.size() != golden.size())
    return infinite;
  double max = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - golden[i]);
    if (!std::isfinite(difference))
      return infinite;
    max = std::max(max, difference);
    squares += difference * difference;
  }
  return {max, std::sqrt(squares / static_cast<double>(values.size()))};
}

double medianRowError(const std::vector<double> &values, const std::vector<double> &golden,
                      int64_t rows) {
  if (values.size() != golden.size())
    return std::numeric_limits<double>::infinity();
  std::vector<double> errors;
  for (int64_t i = 0; i < rows; ++i)
    errors.push_back(compare(slice(values, i, rows), slice(golden, i, rows)).rms);
  std::nth_element(errors.begin(), errors.begin() + rows / 2, errors.end());
  return errors[rows / 2];
}

double rms(const std::vector<double> &values) {
  double squares = 0;
  for (double value : values)
    squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double deviation(std::vector<double> values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / values.size();
  for (double &value : values)
    value -= mean;
  return rms(values);
}

std::vector<double> slice(const std::vector<double> &values, int64_t index, int64_t count) {
  const int64_t size = static_cast<int64_t>(values.size()) / count;
  return {values.begin() + index * size, values.begin() + (index + 1) * size};
}

double hiddenError(Tensors &result, Tensors &golden, const std::string &side) {
  auto relative = [](const std::vector<double> &values, const std::vector<double> &golden) {
    return compare(values, golden).max / std::max(1.0, rms(golden));
  };
  const Tensor &given = result[side + "hidden"], &wanted = golden[side + "hidden"];
  if (given.shape != wanted.shape)
    return INFINITY;
  const std::string last = side + "hidden_final";
  double error = relative(result[last].values, golden[last].values);
  const int64_t layers = wanted.shape[0];
  for (int64_t i = 0; i < layers; ++i)
    error =
        std::max(error, relative(slice(given.values, i, layers), slice(wanted.values, i, layers)));
  return error;
}

std::string join(const std::vector<int64_t> &ids) {
  std::string text;
  for (int64_t id : ids)
    text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

bool choosesExperts(const std::string &model) {
  const nlohmann::json config = readJson(folderOf(model) + "/config.json");
  return config.contains("num_local_experts") || config.contains("num_experts") ||
         config.contains("n_routed_experts");
}

} // namespace conformance

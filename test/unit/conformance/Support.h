// Compiles models and runs the executables as a user would, and compares tensors with golden ones.
#ifndef TENON_TEST_CONFORMANCE_SUPPORT_H
#define TENON_TEST_CONFORMANCE_SUPPORT_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace conformance {

inline const std::string oracle = TENON_ORACLE_DIR "/";
inline const std::string compiler = TENON_TEST_COMPILER;
inline const std::string smolLm2 = TENON_MODELS_DIR "/smollm2-135m-instruct.yaml";

// A path in a folder that is removed when the tests end.
std::string scratch(const std::string &name);

// A small model of the oracle, in Hugging Face's form, with its golden tensors.
std::string folderOf(const std::string &model);
// Models of the oracle of a kind, "decoder", "encoder" or "encdec", by name.
std::vector<std::string> listModels(const std::string &kind);

using Arguments = std::vector<std::string>;
struct Result {
  int code; // negative: the signal that ended it
  std::string out, err;
  double seconds;
};
Result run(const std::string &program, const Arguments &arguments);
// Expects success and JSON on standard output.
nlohmann::json runJson(const std::string &program, const Arguments &arguments);
// Expects this exit code and that standard error is one line (the compiler's progress apart) with
// `part` in it.
void expectRefused(const Result &result, int code, const std::string &part);

// The executable of a model compiled with these options; compiled once. Empty if that failed. Code
// for CUDA is for the emulator, over which executables run.
std::string compile(const std::string &model, const Arguments &options);

nlohmann::json readJson(const std::string &path);

// A safetensors file with every tensor as double.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  std::vector<int64_t> integers() const { return {values.begin(), values.end()}; }
};
using Tensors = std::map<std::string, Tensor>;
Tensors readTensors(const std::string &path);
Tensors goldenOf(const std::string &model);
// As integers.
void writeTensors(const std::string &path, const Tensors &tensors);

// The ids that greedy generation appends, whatever ends a text.
std::vector<int64_t> generate(const std::string &executable, const std::vector<int64_t> &prompt,
                              size_t count);

// Token ids, row by row; each row's tokens lie at `first` and the rest is padding.
struct Batch {
  std::vector<std::vector<int64_t>> rows;
  enum Padding { Right, Left } padding = Right;

  int64_t columns() const;
  int64_t first(size_t row) const;
};
// `OUT logits` on the batch, with what it wrote.
Tensors runLogits(const std::string &executable, const Batch &batch, const Arguments &options = {});

// The same on any inputs.
Tensors runInputs(const std::string &executable, const Tensors &inputs,
                  const Arguments &options = {});

struct Difference {
  double max, rms; // infinite where the sizes differ or a value is not finite
};
Difference compare(const std::vector<double> &values, const std::vector<double> &golden);
// The error (rms) of the row in the middle, of rows by their error: where a model chooses experts a
// close choice may fall otherwise, and then its row is another altogether.
double medianRowError(const std::vector<double> &values, const std::vector<double> &golden,
                      int64_t rows);
double rms(const std::vector<double> &values);
double deviation(std::vector<double> values); // from their mean

// Whether a model sends tokens to experts. Where numbers are rounded a close choice falls
// otherwise, and then its row, and those that attend to it, are others altogether.
bool choosesExperts(const std::string &model);

// Of all hidden states, in units of max(1, rms of the layer's output); `side` is "enc_" or "dec_"
// in models that have both.
double hiddenError(Tensors &result, Tensors &golden, const std::string &side = "");

// Elements [index * n, (index + 1) * n) where n = values / count.
std::vector<double> slice(const std::vector<double> &values, int64_t index, int64_t count);

std::string join(const std::vector<int64_t> &ids);

} // namespace conformance

#endif // TENON_TEST_CONFORMANCE_SUPPORT_H

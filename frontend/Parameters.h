// The numbers an architecture can be given: the `parameters:` section of its file, and the binding
// of a model's `config:` to it.
//
//   hidden: integer 1..1048576            required
//   head_dim: integer = $(hidden / heads) optional; may name the parameters before it
//   norm_eps: number 0..1 = 1.0e-6
//   tie_embeddings: flag = false
//   activation: silu | relu = silu        one of these words
//   window: integer = null                may be absent
//   kinds: list of full | local = null    one for each layer
//   rope: {theta: number = 10000, ...}    a group, written rope.theta elsewhere
#ifndef TENON_FRONTEND_PARAMETERS_H
#define TENON_FRONTEND_PARAMETERS_H

#include "frontend/Value.h"
#include <optional>

namespace tenon {

struct Parameter {
  enum class Type { Integer, Number, Flag, Word };

  std::string name; // "rope.theta"
  Place place;
  Type type;
  bool isList = false;            // of such values
  double min, max;                // integers and numbers
  std::vector<std::string> words; // Word
  std::optional<Value> fallback;  // required without one

  Parameter element() const; // of a list
  // "an integer from 1 to 4096"
  std::string describe() const;
  llvm::Error check(const Value &value) const;
};

class Parameters {
public:
  static llvm::Expected<Parameters> read(const Value &section);

  llvm::ArrayRef<Parameter> list() const { return parameters; }
  const Parameter *find(llvm::StringRef name) const;
  bool isGroup(llvm::StringRef name) const;
  // "hidden, layers, rope.theta"
  std::string names() const;

  // A value for every parameter: those of `config`, and defaults. Groups of which nothing is given
  // are null.
  llvm::Expected<Value> bind(const Value &config) const;

private:
  llvm::Error read(const Value &section, const std::string &prefix);
  llvm::Error checkConfig(const Value &config, const std::string &prefix) const;

  std::vector<Parameter> parameters;
};

} // namespace tenon

#endif // TENON_FRONTEND_PARAMETERS_H

// What an operation sees of the node of an architecture file that builds it.
//
//   - rope: {heads: $heads, head_dim: $head_dim, theta: $rope.theta}
//     ^mnemonic  ^arguments, already evaluated; reading one marks it as used
//
// The frontend implements it; an argument that no getter has read is reported as unknown by the
// frontend.
#ifndef TENON_IR_TEMPLATE_H
#define TENON_IR_TEMPLATE_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/Twine.h"
#include <optional>

namespace tenon {

class TemplateArgs {
public:
  virtual ~TemplateArgs() = default;

  virtual mlir::OpBuilder &getBuilder() = 0;
  virtual mlir::Location getLoc() = 0;
  // What an `encoder:` node has left, as rows of the decoder's batch; null without one.
  virtual mlir::Value getMemory() = 0;
  // The activation that the node applies to; null for the first node of a graph.
  virtual mlir::Value getStream() = 0;
  virtual mlir::Value getBatch() = 0;

  // Whether the argument is present and not null.
  virtual bool has(llvm::StringRef key) = 0;
  // Without a fallback a missing argument is an error. Wrong types are errors at the argument's
  // place.
  virtual mlir::FailureOr<int64_t> getInteger(llvm::StringRef key,
                                              std::optional<int64_t> fallback = std::nullopt) = 0;
  virtual mlir::FailureOr<double> getNumber(llvm::StringRef key,
                                            std::optional<double> fallback = std::nullopt) = 0;
  virtual mlir::FailureOr<bool> getFlag(llvm::StringRef key,
                                        std::optional<bool> fallback = std::nullopt) = 0;
  virtual mlir::FailureOr<std::string>
  getString(llvm::StringRef key, std::optional<llvm::StringRef> fallback = std::nullopt) = 0;
  // A map of numbers (f64), strings and lists of numbers, or null when absent.
  virtual mlir::FailureOr<mlir::DictionaryAttr> getMap(llvm::StringRef key) = 0;
  // Whether the argument is there and is text.
  virtual bool isText(llvm::StringRef key) = 0;
  // Builds a nested list of nodes on `from`, or else the current stream, and returns its value.
  virtual mlir::FailureOr<mlir::Value> getBranch(llvm::StringRef key, mlir::Value from = {}) = 0;
  // The weight `<argument><suffix>`, such as "model.norm" + ".weight"; its shape is checked against
  // the checkpoint.
  virtual mlir::FailureOr<mlir::Value> getWeight(llvm::StringRef key, llvm::StringRef suffix,
                                                 llvm::ArrayRef<int64_t> shape) = 0;

  // `count` such weights as one of shape [count, ...]. The argument's name says `$expert`, which
  // stands for 0, 1, ...; or else it is the whole name of one tensor that holds all of them.
  virtual mlir::FailureOr<mlir::Value> getStack(llvm::StringRef key, llvm::StringRef suffix,
                                                int64_t count, llvm::ArrayRef<int64_t> shape) = 0;

  // Reports an error at the argument's place (or the node's, when `key` is empty).
  virtual mlir::LogicalResult error(llvm::StringRef key, const llvm::Twine &message) = 0;
};

} // namespace tenon

#endif // TENON_IR_TEMPLATE_H

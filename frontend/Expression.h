// Expressions in architecture files.
//
//   $hidden            a parameter or loop variable, with its type
//   $rope.theta        a member
//   $(heads * head_dim)
//   "model.layers.$i.mlp"
//                      text with values in it; here a name ends before '.', "$(rope.theta)" has members
//   "$$"               a dollar sign
//
// Within $( ): integers, numbers, "text", true, false, null, names; in falling precedence
//   - !    * / %    + -    < <= > >=    == !=    &&    ||    c ? a : b
// Integer arithmetic is checked: overflow is an error, and so is a division that leaves a
// remainder.
#ifndef TENON_FRONTEND_EXPRESSION_H
#define TENON_FRONTEND_EXPRESSION_H

#include "frontend/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon {

// Names and what they stand for: the parameters, and the variables of the loops around.
struct Scope {
  const Value *parameters;
  std::vector<std::pair<std::string, int64_t>> variables;
};

// The value with all expressions in it replaced. A plain `$name` keeps the place of what it names,
// so that a message points at the number in the model file; anything else has the place of the
// expression.
llvm::Expected<Value> evaluate(const Value &value, const Scope &scope);

// Calls `visit` with every name that the expressions in a value mention, those in branches not
// taken too.
using NameVisitor = llvm::function_ref<void(llvm::StringRef name, const Place &place)>;
llvm::Error visitNames(const Value &value, NameVisitor visit);

} // namespace tenon

#endif // TENON_FRONTEND_EXPRESSION_H

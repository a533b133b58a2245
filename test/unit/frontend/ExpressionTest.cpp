#include "frontend/Expression.h"
#include "Support.h"
#include "frontend/Yaml.h"

using namespace tenon;
using namespace tenon::test;

namespace {

class ExpressionTest : public testing::Test {
protected:
  Value parameters = llvm::cantFail(readYaml("{heads: 9, kv_heads: 3, eps: 1.0e-5, tied: true, "
                                             "act: silu, rope: {theta: 10000, scaling: null}, "
                                             "most: 9223372036854775807, kinds: [full, local]}",
                                             "model.yaml"));
  Scope scope{&parameters, {{"i", 5}}};

  llvm::Expected<Value> run(const std::string &text) {
    return evaluate(Value(text, Place{std::make_shared<const std::string>("f"), 2, 3}), scope);
  }
  std::string value(const std::string &text) {
    llvm::Expected<Value> result = run(text);
    return result ? result->print() : llvm::toString(result.takeError());
  }
};

TEST_F(ExpressionTest, Computes) {
  const std::pair<const char *, const char *> cases[] = {
      {"$heads", "9"},
      {"$rope.theta", "10000"},
      {"$rope", "{theta: 10000, scaling: null}"},
      {"$rope.scaling.factor", "null"},
      {"$(heads / kv_heads)", "3"},
      {"$(heads - kv_heads - 1)", "5"},
      {"$(2 + 3 * 4 - -1)", "15"},
      {"$((2 + 3) * 4)", "20"},
      {"$(i % 6 == 5)", "true"},
      {"$(!tied || heads < 9)", "false"},
      {"$(tied && heads >= 9 && heads != 10)", "true"},
      {"$(tied ? \"a.b\" : 'c')", "a.b"},
      {"$(heads == 9 ? kv_heads == 3 ? 1 : 2 : 3)", "1"},
      {"$(eps * 2)", "2e-05"},
      {"$(1 / 4.0)", "0.25"},
      {"$(1.0e-2 + 0)", "0.01"},
      {"$(act == \"silu\")", "true"},
      {"$(rope.scaling == null)", "true"},
      {"$(tied || 1 / 0 == 0)", "true"},
      {"$(tied ? 1 : 7 / 2)", "1"},
      {"$(kinds[i - 4] == \"local\")", "true"},
      {"$(tied ? 1 : kinds[7])", "1"},
      {"$(sqrt(heads) + 1)", "4.0"},
      {"$(floor(0.25 * 10))", "2"},
      {"layers.$i.mlp", "layers.5.mlp"},
      {"x$(rope.theta)y$heads", "x10000y9"},
      {"$$heads", "\"$heads\""},
  };
  for (auto [text, expected] : cases)
    EXPECT_EQ(value(text), expected) << text;
}

TEST_F(ExpressionTest, Refuses) {
  const std::pair<const char *, const char *> cases[] = {
      {"$head", "unknown name 'head'"},
      {"$(head + 1)", "unknown name 'head' in $(head + 1)"},
      {"$(heads / 2)", "9 is not a multiple of 2 in $(heads / 2)"},
      {"$(heads / 0)", "9 / 0 divides by zero in $(heads / 0)"},
      {"$(heads % 0)", "9 % 0 divides by zero in $(heads % 0)"},
      {"$(most + 1)", "9223372036854775807 + 1 does not fit 64 bits in $(most + 1)"},
      {"$(-most - 2)", "-9223372036854775807 - 2 does not fit 64 bits in $(-most - 2)"},
      {"$((-most - 1) / -1)",
       "-9223372036854775808 * -1 does not fit 64 bits in $((-most - 1) / -1)"},
      {"$(act * 2)", "cannot compute silu * 2 in $(act * 2)"},
      {"$(act < 2)", "cannot compare 'silu' < 2 in $(act < 2)"},
      {"$(heads ? 1 : 2)", "the condition before '?' is 9, not true or false in $(heads ? 1 : 2)"},
      {"$(heads && tied)", "9 is not true or false in $(heads && tied)"},
      {"$(tied ? 1)", "expected ':' in $(tied ? 1)"},
      {"$(1 + )", "unexpected ')' in $(1 + )"},
      {"$(1 + 2", "expected ')' in $(1 + 2"},
      {"$(1 $ 2)", "unexpected '$ 2)' in $(1 $ 2)"},
      {"$(\"a)", "the text has no closing quote in $(\"a)"},
      {"$(kinds[i])", "there is no element 5 in a list of 2 in $(kinds[i])"},
      {"$(kinds[-1])", "there is no element -1 in a list of 2 in $(kinds[-1])"},
      {"$(heads[0])", "9 is not a list in $(heads[0])"},
      {"$(kinds[0)", "expected ']' in $(kinds[0)"},
      {"$(sqrt(0 - 1))", "cannot compute sqrt(-1) in $(sqrt(0 - 1))"},
      {"$(floor 1)", "expected '(' after floor in $(floor 1)"},
      {"a $ b", "'$' needs a name or '(' behind it; '$$' is a dollar sign"},
      {"x$rope", "a map cannot stand within text"},
  };
  for (auto [text, message] : cases)
    EXPECT_EQ(value(text), std::string("f:2:3: error: ") + message) << text;
}

TEST_F(ExpressionTest, BoundsNesting) {
  EXPECT_NE(value("$(" + std::string(100000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(value("$(" + std::string(100000, '-')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(value("$(" + std::string(100000, '!')).find("nested too deeply"), std::string::npos);
}

// A message about a number must point at the model file, where the number is.
TEST_F(ExpressionTest, NamesKeepTheirPlace) {
  EXPECT_EQ(run("$heads")->place.str(), "model.yaml:1:9");
  EXPECT_EQ(run("$(heads)")->place.str(), "f:2:3");
}

TEST_F(ExpressionTest, VisitsNamesOfBothBranches) {
  std::vector<std::string> names;
  Value text(std::string("a $(tied ? heads / 0 : rope.theta) $i"), Place());
  EXPECT_FALSE(bool(
      visitNames(text, [&](llvm::StringRef name, const Place &) { names.push_back(name.str()); })));
  EXPECT_EQ(names, (std::vector<std::string>{"tied", "heads", "rope.theta", "i"}));
}

} // namespace

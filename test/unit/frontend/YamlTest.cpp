// What is refused before anybody looks at the meaning of a file, and how scalars are read.
#include "frontend/Yaml.h"
#include "Support.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct BadText {
  const char *text, *error;
};

std::string repeat(const char *text, int times) {
  std::string result;
  while (times-- > 0)
    result += text;
  return result;
}

TEST(Yaml, RefusesInOneLine) {
  const BadText cases[] = {
      {"", "f:1:1: error: the file is empty"},
      {"a: 1\nb: 2\na: 3\n", "f:3:1: error: key 'a' is already there"},
      {"a: {b: 1, c: 2, b: 3}\n", "f:1:17: error: key 'b' is already there"},
      {"a: &x 1\nb: 2\n", "f:1:4: error: anchors are not accepted: write the value out"},
      {"a: &x {b: 1}\n", "f:1:4: error: anchors are not accepted: write the value out"},
      {"a: &x [1]\nb: *x\n", "f:1:4: error: anchors are not accepted: write the value out"},
      {"a: !!python/object 1\n",
       "f:1:4: error: tags are not accepted, got 'tag:yaml.org,2002:python/object'"},
      {"a: 1\n---\nb: 2\n", "f:2:1: error: a second document; accepted: one"},
      {"[a]: 1\n", "f:1:1: error: a key must be a plain word"},
      {"a: [1, 2\n", "f:2:1: error: end of sequence flow not found"},
      {"a:\n\tb: 1\n", "f:2:3: error: illegal map value"},
      {"a: \xff\n", "f: error: byte 3 is not UTF-8 text"},
  };
  for (const BadText &bad : cases)
    EXPECT_EQ(errorOf(readYaml(bad.text, "f")), bad.error) << bad.text;
  EXPECT_EQ(errorOf(readYaml(llvm::StringRef("a: \0", 4), "f")),
            "f: error: byte 3 is not UTF-8 text");
}

TEST(Yaml, BoundsNesting) {
  auto brackets = [](int depth) { return repeat("[", depth) + repeat("]", depth); };
  EXPECT_EQ(errorOf(readYaml(brackets(64), "f")), "");
  EXPECT_EQ(errorOf(readYaml(brackets(65), "f")), "f:1:65: error: nested deeper than 64 levels");
  EXPECT_NE(errorOf(readYaml(brackets(100000), "f")), "");
  EXPECT_NE(errorOf(readYaml(repeat("{a: ", 100000), "f")), "");
  EXPECT_EQ(errorOf(readYaml(repeat("- ", 100), "f")),
            "f:1:129: error: nested deeper than 64 levels");
}

TEST(Yaml, BoundsSize) {
  Folder folder;
  folder.write("big.yaml", std::string((4 << 20) + 1, ' '));
  EXPECT_EQ(folder.relative(errorOf(readYamlFile(folder.path("big.yaml")))),
            "big.yaml: error: is 4194305 bytes; accepted: at most 4194304");
  EXPECT_EQ(folder.relative(errorOf(readYamlFile(folder.path("none.yaml")))),
            "none.yaml: error: cannot read: No such file or directory");
}

TEST(Yaml, MessagesAreOneReadableLine) {
  auto message = [](const std::string &text) {
    return llvm::toString(failAt(Place::inFile("f"), text));
  };
  EXPECT_EQ(message("a\nb\x1b"), "f: error: a\\x0Ab\\x1B");
  EXPECT_EQ(message("\xc3\xa9"), "f: error: \xc3\xa9");
  EXPECT_EQ(message("\xe9"), "f: error: \\xE9");
  EXPECT_EQ(message(std::string(1 << 20, 'a')).size(), 2004u);
}

TEST(Yaml, ReadsScalars) {
  auto read = [](llvm::StringRef text) { return parseScalar(text, {}); };
  EXPECT_EQ(*read("17").asInteger(), 17);
  EXPECT_EQ(*read("-17").asInteger(), -17);
  EXPECT_EQ(*read("9223372036854775807").asInteger(), INT64_MAX);
  EXPECT_EQ(read("1.0e-5").getNumber(), 1.0e-5);
  EXPECT_EQ(read("1e-05").getNumber(), 1.0e-5);
  EXPECT_EQ(read(".5").getNumber(), 0.5);
  EXPECT_EQ(*read("true").asFlag(), true);
  EXPECT_TRUE(read("null").isNull());
  EXPECT_TRUE(read("").isNull());
  // Not numbers: what cannot be one, and what other readers take for something else.
  for (const char *text :
       {"9223372036854775808", ".inf", ".nan", "inf", "nan", "1e999", "-1e999", "0x10", "010",
        "1_000", "1.2.3", "--1", "+", "-", ".", "e5", "yes", "no"})
    EXPECT_TRUE(read(text).asString()) << text;
}

TEST(Yaml, QuotedScalarsAreText) {
  llvm::Expected<Value> value = readYaml("{a: \"1\", b: 'null', c: null, d: 1}", "f");
  ASSERT_TRUE(bool(value));
  EXPECT_EQ(value->print(), "{a: \"1\", b: \"null\", c: null, d: 1}");
}

TEST(Yaml, ReadsJson) {
  llvm::Expected<Value> value =
      readYaml("{\n  \"a\": [1, 2.5e-1, \"x\\\"\\u00e9\"],\n\t\"b\":{\"c\":true, \"d\": {}}}", "f");
  ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
  EXPECT_EQ(value->print(), "{a: [1, 0.25, \"x\\\"é\"], b: {c: true, d: {}}}");
  EXPECT_EQ(value->findPath("b.c")->place.str(), "f:3:11");
}

TEST(Yaml, PrintsWhatReadsBack) {
  const char *text =
      "{a: [1, -2, 1.5, 1e-05, 100000.0], b: {c: true, d: null}, e: \"a: b\\\\\\\"\", f: \"\"}";
  llvm::Expected<Value> value = readYaml(text, "f");
  ASSERT_TRUE(bool(value));
  EXPECT_EQ(value->print(), text);
}

} // namespace

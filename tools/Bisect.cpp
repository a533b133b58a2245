// tenon bisect MODEL [compile options] [--ids 1,2,3] [-n N] [--expect IDS]: names the pass that
// changes an answer.
//
// Passes that can be left out, in pipeline order:
//
//   p1 p2 p3 | p4 p5      the first k run, the others do not; the smallest k whose answer differs
//                         names the culprit, p_k
#include "codegen/Error.h"
#include "nlohmann/json.hpp"
#include "tools/Command.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

namespace {

using Ids = std::vector<int64_t>;

std::string print(const Ids &ids) {
  return llvm::join(llvm::map_range(ids, [](int64_t id) { return std::to_string(id); }), ",");
}

class Bisector {
public:
  Bisector(CompileArguments &arguments, std::string ids, int64_t count)
      : arguments(arguments), ids(std::move(ids)), count(count) {}

  llvm::Error run(std::optional<Ids> expected) {
    if (llvm::Error error = arguments.model.resolve().takeError())
      return error;
    passes = arguments.listOptionalPasses();

    if (!expected) {
      llvm::outs() << "expected: what the reference backend answers without them\n";
      std::string target = std::exchange(arguments.options.target, "reference");
      std::string precision = std::exchange(arguments.options.precision, "f32");
      llvm::Expected<Ids> answer = ask(passes);
      if (!answer)
        return answer.takeError();
      expected = *answer;
      arguments.options.target = target;
      arguments.options.precision = precision;
    }
    llvm::outs() << "expected answer: " << print(*expected) << '\n';

    llvm::Expected<bool> all = isWrong(passes.size(), *expected);
    if (!all)
      return all.takeError();
    if (!*all) {
      llvm::outs() << "with all passes the answer is the expected one: nothing to find\n";
      return llvm::Error::success();
    }
    llvm::Expected<bool> none = isWrong(0, *expected);
    if (!none)
      return none.takeError();
    if (*none) {
      llvm::outs() << "without any of them the answer is wrong too: no pass is to blame\n";
      return llvm::Error::success();
    }
    size_t right = 0, wrong = passes.size();
    while (wrong - right > 1) {
      size_t middle = (right + wrong) / 2;
      llvm::Expected<bool> isMiddleWrong = isWrong(middle, *expected);
      if (!isMiddleWrong)
        return isMiddleWrong.takeError();
      (*isMiddleWrong ? wrong : right) = middle;
    }
    llvm::outs() << "culprit: " << passes[wrong - 1] << '\n';
    return llvm::Error::success();
  }

private:
  // Whether the first `enabled` passes lead to another answer.
  llvm::Expected<bool> isWrong(size_t enabled, const Ids &expected) {
    std::vector<std::string> disabled(passes.begin() + enabled, passes.end());
    llvm::Expected<Ids> answer = ask(disabled);
    if (!answer)
      return answer.takeError();
    bool wrong = *answer != expected;
    llvm::outs() << (wrong ? "differs" : "same   ") << "  " << enabled << " of " << passes.size()
                 << " passes" << (enabled ? ", up to " + passes[enabled - 1] : "")
                 << (wrong ? ": " + print(*answer) : "") << '\n';
    return wrong;
  }

  llvm::Expected<Ids> ask(const std::vector<std::string> &disabled) {
    llvm::SmallString<128> program, output;
    if (llvm::sys::fs::createTemporaryFile("tenon-bisect", "", program) ||
        llvm::sys::fs::createTemporaryFile("tenon-bisect", "json", output))
      return refused("bisect: cannot make a temporary file");
    llvm::FileRemover removeProgram(program), removeOutput(output);
    std::vector<std::string> given = arguments.options.disabledPasses;
    llvm::append_range(arguments.options.disabledPasses, disabled);
    llvm::Error error = arguments.compile(program.str().str(), /*isQuiet=*/true);
    arguments.options.disabledPasses = given;
    if (error)
      return error;
    std::string number = std::to_string(count);
    llvm::StringRef command[] = {program, "generate", "--ids",        ids,
                                 "-n",    number,     "--ignore-eos", "--json"};
    if (llvm::sys::ExecuteAndWait(program, command, std::nullopt,
                                  {std::nullopt, llvm::StringRef(output), std::nullopt}))
      return refused("bisect: the executable failed");
    auto text = llvm::MemoryBuffer::getFile(output);
    auto answer = nlohmann::json::parse(text ? (*text)->getBuffer().str() : "", nullptr,
                                        /*allow_exceptions=*/false);
    if (!answer.is_object() || !answer.contains("ids"))
      return refused("bisect: the executable gave no answer");
    return answer["ids"].get<Ids>();
  }

  CompileArguments &arguments;
  std::string ids;
  int64_t count;
  std::vector<std::string> passes;
};

llvm::Expected<Ids> parseIds(llvm::StringRef text) {
  Ids ids;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts)
    if (part.getAsInteger(10, ids.emplace_back()))
      return refused("'" + text + "' is no list of token ids; accepted: 1,2,3");
  return ids;
}

} // namespace

Action addBisect(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  auto ids = std::make_shared<std::string>("1,2,3,4");
  auto expect = std::make_shared<std::string>();
  auto count = std::make_shared<int64_t>(8);
  arguments->add(app);
  app.add_option("--ids", *ids, "token ids of the prompt")->type_name("IDS");
  app.add_option("-n", *count, "tokens to generate")->check(CLI::Range(1, 1 << 20));
  app.add_option("--expect", *expect,
                 "the right answer; default: the reference backend's, without passes")
      ->type_name("IDS");
  return [=]() -> llvm::Error {
    if (llvm::Error error = parseIds(*ids).takeError())
      return error;
    std::optional<Ids> expected;
    if (!expect->empty()) {
      llvm::Expected<Ids> parsed = parseIds(*expect);
      if (!parsed)
        return parsed.takeError();
      expected = *parsed;
    }
    return Bisector(*arguments, *ids, *count).run(expected);
  };
}

} // namespace tenon

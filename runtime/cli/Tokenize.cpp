// OUT tokenize "text", OUT detokenize 1,2,3
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

namespace tenon::rt {

void runTokenize(const Invocation &invocation, const Arguments &arguments) {
  std::string text;
  bool json = false;
  CLI::App app("Turns text into token ids.", "tokenize");
  app.add_option("text", text, "The text; - reads standard input")->required()->option_text("TEXT");
  app.add_flag("--json", json, "Print {ids, tokens, offsets}; offsets count characters");
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  Encoding encoding = program.tokenizer().encode(readText(text));
  if (json)
    return printJson(
        {{"ids", encoding.ids}, {"tokens", encoding.tokens}, {"offsets", encoding.offsets}});
  std::string line;
  for (int32_t id : encoding.ids)
    line += (line.empty() ? "" : ",") + std::to_string(id);
  print(line + "\n");
}

void runDetokenize(const Invocation &invocation, const Arguments &arguments) {
  std::string list;
  CLI::App app("Turns token ids into text.", "detokenize");
  app.add_option("ids", list, "1,2,3; - reads standard input")->required()->option_text("IDS");
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  std::vector<int32_t> ids = parseIds(readText(list), "detokenize");
  program.checkIds(ids);
  print(program.tokenizer().decode(ids) + "\n");
}

} // namespace tenon::rt

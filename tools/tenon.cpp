// tenon: the compiler's command line. Exit codes: 0 done, 1 the input was refused, 2 usage, 3 the
// machine lacks something, 70 a bug of ours.
#include "codegen/Version.h"
#include "passes/Pipeline.h"
#include "plugin/Loader.h"
#include "tools/Command.h"
#include "llvm/Support/raw_ostream.h"

using namespace tenon;

static int report(llvm::Error error) {
  int code = 0;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    std::error_code kind = info.convertToErrorCode();
    code = kind == std::errc::not_supported ? 3 : kind == std::errc::state_not_recoverable ? 70 : 1;
    if (std::string message = info.message(); !message.empty())
      llvm::errs() << "tenon: " << message << '\n';
  });
  return code;
}

int main(int argc, char **argv) {
  registerAllPasses(); // so that they can be named
  CLI::App app("Compiles transformers into native executables", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  std::vector<std::pair<CLI::App *, Action>> commands;
  auto add = [&](const char *name, const char *summary, Action (*make)(CLI::App &)) {
    CLI::App *command = app.add_subcommand(name, summary);
    commands.push_back({command, make(*command)});
  };
  add("compile", "compile a model to an executable", addCompile);
  add("bisect", "name the pass that changes an answer", addBisect);
  add("compare", "name the first operation whose values are not those of a dump", addCompare);
  add("import", "write the model file of a Hugging Face folder or a GGUF file", addImport);
  add("run", "compile a model into the cache, then run it", addRun);
  add("new", "write the project of a new pass, operation or backend", addNew);
  add("plan", "print parameters, shapes and memory of a model", addPlan);
  add("plugins", "list the loaded plugins and what they add", addPlugins);
  add("diff", "say what differs between two graphs", addDiff);
  add("graph", "draw the graph of a phase as SVG or HTML", addGraph);
  add("tokenize", "tokenize text with a tokenizer file", addTokenize);

  if (llvm::Error error = PluginLoader::get().loadFromEnvironment())
    return report(std::move(error));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (auto &[command, action] : commands)
    if (command->parsed())
      return report(action());
  return 2;
}

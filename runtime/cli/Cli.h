// The executable's command line. Each command is one file here: it declares its options, opens the
// model and answers.
//
//   OUT "prompt" [options]       = OUT generate "prompt" [options]
//   OUT logits | tokenize | detokenize | perplexity | info | bench …
//   OUT --list-devices           where it could run
//   OUT -- TEXT                  a prompt that looks like a command or an option
//   OUT -                        the prompt is standard input
#ifndef TENON_RUNTIME_CLI_CLI_H
#define TENON_RUNTIME_CLI_CLI_H

#include "runtime/Clock.h"
#include "runtime/Executor.h"
#include "runtime/kernel_abi.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tenon::rt {

struct Invocation {
  const tenon_compiled &compiled;
  std::string path; // of the file that holds the sections
  std::string name; // what messages call it
  Clock started;
};

using Arguments = std::vector<std::string>;

// Runs a command; prints a refusal as one line on stderr. Returns the exit code. `argv[0]` is
// skipped.
int runCli(const Invocation &invocation, int argc, char **argv);

// The commands. They throw Error.
void runGenerate(const Invocation &invocation, const Arguments &arguments);
void runLogits(const Invocation &invocation, const Arguments &arguments);
void runTokenize(const Invocation &invocation, const Arguments &arguments);
void runDetokenize(const Invocation &invocation, const Arguments &arguments);
void runPerplexity(const Invocation &invocation, const Arguments &arguments);
void runInfo(const Invocation &invocation, const Arguments &arguments);
void runBench(const Invocation &invocation, const Arguments &arguments);

// What the commands share.

// Reads the options; a mistake becomes Error with ExitUsage, --help ends the program.
void parse(CLI::App &app, const Arguments &arguments);
// "1,2,3" → ids; `what` names the option in the refusal.
std::vector<int32_t> parseIds(const std::string &list, const std::string &what);
// The argument itself, or standard input (less one final newline) when it is "-".
std::string readText(const std::string &argument);
// A whole file, at most 1 GiB.
std::string readFile(const std::string &path);
// --threads and --pin; --device where programs run on one, which needs no threads.
void addMachineOptions(CLI::App &app, const Invocation &invocation, ExecutorOptions &options);
// Writes to stdout; a full disk is an error, a closed pipe ends the program.
void print(const std::string &text);

} // namespace tenon::rt

#endif // TENON_RUNTIME_CLI_CLI_H

#include "runtime/cli/Cli.h"

#include "runtime/Error.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace tenon::rt {

namespace {
struct Command {
  std::string_view name;
  void (*run)(const Invocation &, const Arguments &);
};

// Thrown by `parse` when help was asked for; the text goes to stdout.
struct HelpAsked {
  std::string text;
};
} // namespace

static constexpr Command commands[] = {
    {"generate", runGenerate},     {"logits", runLogits},         {"tokenize", runTokenize},
    {"detokenize", runDetokenize}, {"perplexity", runPerplexity}, {"info", runInfo},
    {"bench", runBench},
};

static std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

static std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

static void listDevices(const Invocation &invocation) {
  const DeviceRuntime *runtime = deviceRuntime(invocation.compiled);
  if (!runtime)
    refuse("--list-devices: this executable runs on the CPU; compile with --target cuda for a GPU");
  for (const std::string &line : runtime->list())
    print(line + "\n");
}

static void dispatch(const Invocation &invocation, Arguments arguments) {
  if (arguments.empty())
    throw Error(ExitUsage, "give a prompt, or a command (generate, logits, tokenize, detokenize, "
                           "perplexity, info, bench); --help says more");
  for (const Command &command : commands)
    if (arguments.front() == command.name) {
      arguments.erase(arguments.begin());
      return command.run(invocation, arguments);
    }
  if (arguments.front() == "--list-devices" && arguments.size() == 1)
    return listDevices(invocation);
  runGenerate(invocation, arguments);
}

int runCli(const Invocation &invocation, int argc, char **argv) {
  auto complain = [&](ExitCode code, const std::string &message) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", baseName(invocation.name).c_str(), oneLine(message).c_str());
    return code;
  };
  try {
    dispatch(invocation, Arguments(argv + 1, argv + argc));
    print("");
    return ExitDone;
  } catch (const HelpAsked &help) {
    std::fputs(help.text.c_str(), stdout);
    return ExitDone;
  } catch (const Error &error) {
    return complain(error.code(), error.what());
  } catch (const TokenizerError &error) {
    return complain(ExitRefused, error.what());
  } catch (const std::bad_alloc &) {
    return complain(ExitMachine, "not enough memory");
  } catch (const std::exception &error) {
    return complain(ExitBug, fmt::format("internal error: {}", error.what()));
  }
}

void parse(CLI::App &app, const Arguments &arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp &) {
    throw HelpAsked{app.help()};
  } catch (const CLI::ParseError &error) {
    throw Error(ExitUsage, fmt::format("{}; {} --help says more", error.what(), app.get_name()));
  }
}

std::vector<int32_t> parseIds(const std::string &list, const std::string &what) {
  std::vector<int32_t> ids;
  const char *at = list.c_str();
  while (*at) {
    char *end;
    errno = 0;
    long long id = std::strtoll(at, &end, 10);
    bool separated = *end == ',' ? end[1] != 0 : *end == 0;
    if (end == at || errno || id < 0 || id > INT32_MAX || !separated)
      refuse("{}: '{}' is not a list of token ids such as 1,2,3 (see character {})", what,
             list.size() > 60 ? list.substr(0, 60) + "…" : list, at - list.c_str() + 1);
    ids.push_back(static_cast<int32_t>(id));
    at = *end ? end + 1 : end;
  }
  if (ids.empty())
    refuse("{}: no token ids; give a list such as 1,2,3", what);
  return ids;
}

static constexpr size_t largestText = size_t(1) << 30;

static std::string readStream(FILE *file, const std::string &name) {
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, count);
    if (text.size() > largestText)
      refuse("{}: more than {} MiB of text", name, largestText >> 20);
  }
  if (std::ferror(file))
    refuse("{}: {}", name, std::strerror(errno));
  return text;
}

std::string readText(const std::string &argument) {
  if (argument != "-")
    return argument;
  std::string text = readStream(stdin, "standard input");
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

std::string readFile(const std::string &path) {
  if (path == "-")
    return readStream(stdin, "standard input");
  FILE *file = std::fopen(path.c_str(), "re");
  if (!file)
    refuse("{}: {}", path, std::strerror(errno));
  struct Closer {
    FILE *file;
    ~Closer() { std::fclose(file); }
  } closer{file};
  return readStream(file, path);
}

void addMachineOptions(CLI::App &app, const Invocation &invocation, ExecutorOptions &options) {
  if (deviceRuntime(invocation.compiled))
    app.add_option("--device", options.device, "Number of the GPU (0); --list-devices shows them")
        ->check(CLI::Range(0, 1023))
        ->option_text("N");
  app.add_option("--threads", options.threads, "Threads; without it, as many as CPUs allowed")
      ->check(CLI::Range(1, 1024))
      ->option_text("T");
  app.add_flag("--pin", options.pin, "Bind each thread to its own CPU");
}

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    refuse("standard output: {}", std::strerror(errno));
}

} // namespace tenon::rt

// A refusal: one sentence for a person (what, where, what would be accepted) and the process's exit
// code. Thrown anywhere in the runtime; `runCli` prints it, the C ABI keeps it for
// tenon_last_error.
#ifndef TENON_RUNTIME_ERROR_H
#define TENON_RUNTIME_ERROR_H

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tenon::rt {

enum ExitCode {
  ExitDone = 0,
  ExitRefused = 1, // the user's input
  ExitUsage = 2,   // the command line
  ExitMachine = 3, // the machine lacks something
  ExitBug = 70,    // ours
};

class Error : public std::runtime_error {
public:
  Error(ExitCode code, const std::string &message) : std::runtime_error(message), exitCode(code) {}
  ExitCode code() const { return exitCode; }

private:
  ExitCode exitCode;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args &&...args) {
  throw Error(ExitRefused, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_ERROR_H

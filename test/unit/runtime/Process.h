// Runs the toy executable as a user would.
#ifndef TENON_TEST_RUNTIME_PROCESS_H
#define TENON_TEST_RUNTIME_PROCESS_H

#include "Toy.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace toy {

// A file in the scratch folder.
inline std::string path(const std::string &name) { return scratchFolder() + "/" + name; }

// The toy executable with these sections behind it.
std::string executable(const std::string &name, const Sections &sections);

struct Result {
  int code; // negative: the signal that ended it
  std::string out, err;
};
Result run(const std::string &program, std::vector<std::string> arguments,
           const std::string &input = "");

// Expects a refusal with this exit code: one line on stderr that contains `part`.
void expectRefused(const Result &result, int code, const std::string &part);
// Expects success and JSON.
nlohmann::json parse(const Result &result);

} // namespace toy

#endif // TENON_TEST_RUNTIME_PROCESS_H

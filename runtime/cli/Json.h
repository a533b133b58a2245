// JSON as the commands print it: keys in the order written, invalid UTF-8 replaced, one line.
#ifndef TENON_RUNTIME_CLI_JSON_H
#define TENON_RUNTIME_CLI_JSON_H

#include "runtime/cli/Cli.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace tenon::rt {

using Json = nlohmann::ordered_json;

inline void printJson(const Json &json) {
  print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

// Enough digits for a measured time or rate.
inline double rounded(double value) { return std::round(value * 1000) / 1000; }

} // namespace tenon::rt

#endif // TENON_RUNTIME_CLI_JSON_H

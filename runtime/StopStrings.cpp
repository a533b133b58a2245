#include "runtime/StopStrings.h"

#include <algorithm>

namespace tenon::rt {

StopStrings::StopStrings(std::vector<std::string> strings) : stops(std::move(strings)) {
  stops.erase(std::remove(stops.begin(), stops.end(), std::string()), stops.end());
}

std::string StopStrings::push(std::string_view text) {
  if (found)
    return {};
  held += text;
  // The stop string that completes first wins, so that the answer does not depend on how the text
  // was cut into tokens.
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string &stop : stops) {
    size_t at = held.find(stop);
    if (at == std::string::npos)
      continue;
    size_t atEnd = at + stop.size();
    if (atEnd < end || (atEnd == end && at < begin)) {
      begin = at;
      end = atEnd;
    }
  }
  if (begin != std::string::npos) {
    found = true;
    std::string before = held.substr(0, begin);
    held.clear();
    return before;
  }
  // Hold back the longest end of the text that begins a stop string.
  size_t hold = 0;
  for (const std::string &stop : stops)
    for (size_t length = std::min(stop.size() - 1, held.size()); length > hold; --length)
      if (held.compare(held.size() - length, length, stop, 0, length) == 0)
        hold = length;
  std::string ready = held.substr(0, held.size() - hold);
  held.erase(0, held.size() - hold);
  return ready;
}

std::string StopStrings::flush() {
  std::string rest;
  rest.swap(held);
  return rest;
}

} // namespace tenon::rt

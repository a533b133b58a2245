// Ends a stream of text at a stop string.
#ifndef TENON_RUNTIME_STOPSTRINGS_H
#define TENON_RUNTIME_STOPSTRINGS_H

#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

// Looks for the first stop string to complete. Text that might begin one is held back.
//
//   stops {"\n\n"}:   push "a\n"  →  "a"      push "b"  →  "\nb"      push "\n\n"  →  "", stopped
class StopStrings {
public:
  // Empty strings stop nothing.
  explicit StopStrings(std::vector<std::string> stops);

  std::string push(std::string_view text);
  std::string flush();
  // A stop string was found. It and all behind it is dropped.
  bool stopped() const { return found; }

private:
  std::vector<std::string> stops;
  std::string held;
  bool found = false;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_STOPSTRINGS_H

// A stopwatch.
#ifndef TENON_RUNTIME_CLOCK_H
#define TENON_RUNTIME_CLOCK_H

#include <chrono>

namespace tenon::rt {

class Clock {
public:
  // Milliseconds since it was made.
  double ms() const { return since(begin); }
  // Milliseconds since it was made or last asked.
  double lapMs() {
    double passed = since(lap);
    lap = std::chrono::steady_clock::now();
    return passed;
  }

private:
  static double since(std::chrono::steady_clock::time_point then) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - then)
        .count();
  }
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now(), lap = begin;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_CLOCK_H

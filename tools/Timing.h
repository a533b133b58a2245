// What `tenon compile --time` prints: seconds of each step and pass, then what a token and a prompt
// cost on paper.
#ifndef TENON_TOOLS_TIMING_H
#define TENON_TOOLS_TIMING_H

#include "codegen/Compile.h"
#include "codegen/Cost.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace tenon {

class Timing {
public:
  // A step begins; the one before it ends.
  void begin(llvm::StringRef step);
  void end();

  // Measures the passes of a compilation and looks at the graph that it makes. Stays alive until
  // the compilation is over.
  void attach(CompileOptions &options, int64_t tokens);

  void print(llvm::raw_ostream &out) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Spent {
    double seconds = 0;
    int runs = 0;
  };
  class Instrumentation;

  struct Estimate {
    std::string heading;
    CostTable table;
  };
  void estimate(mlir::ModuleOp module, int64_t tokens);
  static void printCost(const Estimate &estimate, llvm::raw_ostream &out);

  std::vector<std::pair<std::string, double>> steps;
  Clock::time_point stepStart;
  bool isRunning = false;
  llvm::MapVector<llvm::StringRef, Spent> passes; // as first executed
  std::vector<Estimate> estimates;
  int64_t cacheBytesPerToken = 0;
};

} // namespace tenon

#endif // TENON_TOOLS_TIMING_H

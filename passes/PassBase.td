//===- PassBase.td - passes that say what they promise --------------------===//
//
// For Passes.td and for those of plugins. See Promise.h for what the promises mean.
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PASSBASE_TD
#define TENON_PASSES_PASSBASE_TD

include "mlir/Pass/PassBase.td"

class Promise<string promise> {
  string cpp = promise;
}

// Every function takes and gives what it did.
def SameIO : Promise<"::tenon::Promise::sameIO">;
// Functions change their names, arguments or rows; what is computed for a token stays.
def PhaseMap : Promise<"::tenon::Promise::phaseMap">;
// Results may differ by so many thousandths of the largest.
class Lossy<int perMille, Promise promise = SameIO> : Promise<promise.cpp # ", " # perMille>;

class TenonPass<string argument, string operation, Promise promise = SameIO>
    : Pass<argument, operation> {
  let baseClass = "::tenon::PromisingPass<" # operation # ", " # promise.cpp # ">";
}

#endif // TENON_PASSES_PASSBASE_TD

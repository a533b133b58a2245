// How a checkpoint stores the elements of a tensor, and how to read them.
//
// A row of a tensor is a run of blocks; a block holds `valuesPerBlock` elements along the last
// dimension. Two readings exist: `decodeRow` gives numbers (f32), `decodeGroups` gives the integers
// and scales behind them, so that a quantised tensor can be repacked without being rounded again:
//
//   value = scale[g] * code + min[g]      g = index / groupSize
#ifndef TENON_IR_STORAGE_H
#define TENON_IR_STORAGE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace tenon {

// Names follow GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) in lower case.
// F64 occurs in no checkpoint; the compiler makes such tables (RoPE frequencies).
enum class Storage {
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  F64
};

struct StorageInfo {
  Storage storage;
  llvm::StringLiteral name; // as printed in IR: "f32", "q4_1", "q6_k"
  int64_t valuesPerBlock;
  int64_t bytesPerBlock;
  // The integer form; bits == 0 for floating-point storage.
  int bits;          // 4 or 8: the narrowest of the two that holds every code
  int64_t groupSize; // elements that share a scale: 16 or 32
  bool hasMin; // codes are unsigned and `min` is meaningful; otherwise codes are int8 and min is 0
};

const StorageInfo &getStorageInfo(Storage storage);
std::optional<Storage> parseStorage(llvm::StringRef name);
inline bool isQuantised(Storage storage) { return getStorageInfo(storage).bits != 0; }

// Bytes of a row of `values` elements; `values` must be a multiple of valuesPerBlock.
int64_t getRowBytes(Storage storage, int64_t values);

// Decodes a row of `values` elements to f32.
void decodeRow(Storage storage, const uint8_t *row, int64_t values, float *out);

// Decodes a quantised row to codes [values], scales [values / groupSize], mins [values /
// groupSize]. Codes are uint8 when hasMin, int8 (two's complement in the byte) otherwise.
void decodeGroups(Storage storage, const uint8_t *row, int64_t values, uint8_t *codes,
                  float *scales, float *mins);

float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value); // round to nearest even
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value); // round to nearest even; NaN stays NaN

} // namespace tenon

#endif // TENON_IR_STORAGE_H

// What `OUT logits` reads: a safetensors file with the tokens of a batch.
//
//   input_ids [B, L]
//   attention_mask [B, L]         one run of 1s in each row: its tokens are a sequence with
//     0 0 1 1 1 0                 positions from 0; without it whole rows
//     - - 0 1 2 -
//   token_type_ids [B, L]         for models with token types; without it all are 0
//   decoder_input_ids [B, M]      for encoder-decoders, whose encoder reads input_ids
//   labels [B, L or M]            the token that a row of logits should name; -100: none
#ifndef TENON_RUNTIME_CLI_TOKENINPUT_H
#define TENON_RUNTIME_CLI_TOKENINPUT_H

#include "runtime/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::rt {

// The sequence of a row.
struct TokenRun {
  int64_t row, first; // where it begins
  std::vector<int32_t> ids, types;
};

struct TokenInput {
  int64_t rows = 0, columns = 0;
  std::vector<TokenRun> runs;        // of every row
  int64_t decoderColumns = 0;        // 0: no encoder-decoder
  std::vector<TokenRun> decoderRuns; // of every row
  std::vector<int32_t> labels;       // of every answered token; empty: none were given

  // What the logits are for.
  int64_t answeredColumns() const { return decoderColumns > 0 ? decoderColumns : columns; }
  const std::vector<TokenRun> &answeredRuns() const {
    return decoderColumns > 0 ? decoderRuns : runs;
  }
};

// Labels that are not scored.
constexpr int32_t noLabel = -100;

// Refuses what the model cannot take.
TokenInput readTokenInput(const std::string &path, const Program &program);

} // namespace tenon::rt

#endif // TENON_RUNTIME_CLI_TOKENINPUT_H

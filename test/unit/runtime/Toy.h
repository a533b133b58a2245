// A toy in place of a compiled model, with everything the runtime must get right visible in its
// answers.
//
//   layer 0 of the cache keeps each token's id (in k), layer 1 its position + 1 (in v)
//   h = sum over p <= position of (id[p] + p + 1) * (p + 1)      next = weights[h mod vocab]
//   logits[v] = -0.25 * |v - next|                     hidden[i] = {id, position, i, h}
//
// A wrong block table, position, order, barrier, layer offset or weight changes the next token.
#ifndef TENON_TEST_RUNTIME_TOY_H
#define TENON_TEST_RUNTIME_TOY_H

#include "runtime/artefact.h"
#include "runtime/kernel_abi.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace toy {

constexpr int vocab = 480, context = 128, layers = 2, hiddens = 3, hiddenWidth = 4;
constexpr int weightBytes = vocab * 4;

const int32_t *weights(); // [vocab]
// What the model answers behind these tokens.
int32_t next(const std::vector<int32_t> &ids);
// `count` greedy tokens.
std::vector<int32_t> greedy(std::vector<int32_t> prompt, int count);

using Sections = std::vector<std::pair<std::string, std::string>>;
// weights and meta; `extraMeta` is spliced into the meta object: R"("generation": {"eos": [5]})"
Sections sections(const std::string &extraMeta = "");
// The bytes of `image` with sections behind them.
std::string append(std::string image, const Sections &sections);

void writeFile(const std::string &path, const std::string &bytes);
std::string readFile(const std::string &path);
// A folder of this process's own, removed at exit.
const std::string &scratchFolder();

} // namespace toy

#endif // TENON_TEST_RUNTIME_TOY_H

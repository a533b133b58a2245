// tk_sample: the next token of each scored row, as runtime/Sampler.h draws it, so that ids leave
// the device and not logits. A block for each row.
//
// A token is as far from the best one as the logarithm of its weight says, and a weight is a whole
// number, so that sums hang on no order:
//
//   key(i) = (best - logit[i]) / temperature · 2²⁷        weight(i) = exp(-key · 2⁻²⁷) · 2⁴⁰
//
// top-k and min-p are a largest key then. What comes first up to some mass, which top-p and a draw
// by rank ask for, is found digit by digit of the key:
//
//   digit         0      1      2     ...     masses of the keys that begin with the digits so far
//   mass       [  0  ][ 40  ][ 300 ][ ...
//                              ▲ 270          their sum reaches what is asked for: the next digit
//
// Tokens less likely than 10⁻¹² times the best one are never drawn.
#include "reduce.h"

namespace tk {

constexpr uint32_t NoKey = 0xffffffffu;
constexpr float KeyUnit = 1 << 27, LargestDistance = 27; // weights are above 0
constexpr int Digits = 256;
static_assert(TK_SAMPLE_WORDS == Digits + 2, "as a block is given");

TK_DEVICE uint64_t weightOf(uint32_t key) {
  return (uint64_t)(exponential(-(float)key / KeyUnit) * 0x1p40f);
}

// Where a sum over tokens reaches what was asked for.
struct Reached {
  uint32_t key;    // of the token there
  uint64_t before; // the sum of smaller keys
};

struct Tokens {
  const float *logits;
  int32_t count;
  float best, perUnit; // 1 / temperature
  uint32_t last;       // the largest key that may be drawn
  uint64_t *space;     // shared memory of TK_SAMPLE_WORDS

  TK_METHOD uint32_t key(int32_t i) const {
    float distance = (best - logits[i]) * perUnit;
    return distance < LargestDistance ? (uint32_t)(distance * KeyUnit) : NoKey; // a NaN has none
  }
  TK_METHOD bool mayBeDrawn(uint32_t key) const { return key <= last && key != NoKey; }
};

struct CountOne {
  TK_METHOD uint64_t operator()(uint32_t) const { return 1; }
};
struct CountWeight {
  TK_METHOD uint64_t operator()(uint32_t key) const { return weightOf(key); }
};
struct CountKey {
  uint32_t wanted;
  TK_METHOD uint64_t operator()(uint32_t key) const { return key == wanted; }
};

// The sum of all tokens that may be drawn; every thread gets it.
template <class Mass> TK_DEVICE uint64_t sumOf(const Tokens &t, Mass mass) {
  uint64_t sum = 0;
  for (int32_t i = threadIndex(); i < t.count; i += threadCount())
    if (uint32_t key = t.key(i); t.mayBeDrawn(key))
      sum += mass(key);
  sync(); // the space is free
  return blockSum(sum, t.space);
}

// The first of `count` sums at which their running sum, which begins at `before`, reaches `asked`;
// by one warp. `before` becomes the running sum before it.
TK_DEVICE int firstReaching(const uint64_t *sums, int count, uint64_t asked, uint64_t &before) {
  for (int first = 0;; first += 32) {
    int i = first + lane();
    uint64_t own = i < count ? sums[i] : 0, upTo = own;
    TK_UNROLL
    for (int step = 1; step < 32; step *= 2) {
      uint64_t lower = shuffle(upTo, (lane() - step) & 31);
      upTo += lane() >= step ? lower : 0;
    }
    uint32_t reached = ballotLanes(before + upTo >= asked);
    if (reached) {
      int at = 0;
      while (!(reached >> at & 1))
        ++at;
      before += shuffle(upTo - own, at);
      return first + at;
    }
    before += shuffle(upTo, 31);
    if (first + 32 >= count)
      return count - 1; // no one asks for more than there is
  }
}

// In the order of keys. 1 <= asked <= the sum of all.
template <class Mass> TK_DEVICE Reached findByKey(const Tokens &t, uint64_t asked, Mass mass) {
  Reached found = {0, 0};
  uint64_t *digits = t.space, *answer = t.space + Digits;
  for (int shift = 24; shift >= 0; shift -= 8) {
    sync();
    for (int d = threadIndex(); d < Digits; d += threadCount())
      digits[d] = 0;
    sync();
    for (int32_t i = threadIndex(); i < t.count; i += threadCount()) {
      uint32_t key = t.key(i);
      bool matches = shift == 24 || key >> (shift + 8) == found.key;
      if (matches && t.mayBeDrawn(key))
        atomicAdd(digits + (key >> shift) % Digits, mass(key));
    }
    sync();
    if (warp() == 0) {
      uint64_t before = found.before;
      int digit = firstReaching(digits, Digits, asked, before);
      if (lane() == 0) {
        answer[0] = (uint64_t)digit;
        answer[1] = before;
      }
    }
    sync();
    found = {found.key << 8 | (uint32_t)answer[0], answer[1]};
  }
  return found;
}

// In the order of ids: the token. 1 <= asked <= the sum of all. Each warp has a run of ids; one of
// them then goes through its own.
template <class Mass> TK_DEVICE int32_t findById(const Tokens &t, uint64_t asked, Mass mass) {
  int32_t run = (t.count + warps() - 1) / warps(), begin = warp() * run;
  int32_t end = least(begin + run, t.count);
  auto massOf = [&](int32_t i) -> uint64_t {
    uint32_t key = i < end ? t.key(i) : NoKey;
    return t.mayBeDrawn(key) ? mass(key) : 0;
  };
  uint64_t sum = 0;
  for (int32_t i = begin + lane(); i < end; i += 32)
    sum += massOf(i);
  sync(); // the space is free
  warpSums(sum, t.space);
  uint64_t before = 0;
  int chosen = firstReaching(t.space, warps(), asked, before);
  uint64_t *own = t.space + warps(), *answer = own + 32;
  if (warp() == chosen) {
    int32_t at = begin;
    for (; at < end; at += 32) {
      own[lane()] = massOf(at + lane());
      syncWarp();
      uint64_t here = warpSum(own[lane()]);
      if (before + here >= asked || at + 32 >= end)
        break;
      before += here;
      syncWarp();
    }
    int first = firstReaching(own, 32, asked, before);
    if (lane() == 0)
      *answer = (uint64_t)(at + first);
  }
  sync();
  return (int32_t)*answer;
}

// The best token, the first of equals; 0 where there is none. Its logit goes to `best`.
TK_DEVICE int32_t findBest(const float *logits, int32_t count, uint64_t *space, float &best) {
  best = -infinity();
  int32_t at = count;
  auto take = [&](float other, int32_t place) {
    if (other > best || (other == best && place < at)) {
      best = other;
      at = place;
    }
  };
  for (int32_t i = threadIndex(); i < count; i += threadCount())
    take(logits[i], i);
  TK_UNROLL
  for (int mask = 16; mask > 0; mask /= 2)
    take(shuffleXor(best, mask), shuffleXor(at, mask));
  sync();
  if (lane() == 0)
    space[warp()] = (uint64_t)floatToBits(best) << 32 | (uint32_t)at;
  sync();
  for (int w = 0; w < warps(); ++w)
    take(bitsToFloat((uint32_t)(space[w] >> 32)), (int32_t)(uint32_t)space[w]);
  return at < count ? at : 0;
}

// 1 .. mass, as evenly as `random` in [0, 1).
TK_DEVICE uint64_t drawFrom(uint64_t mass, double random) {
  uint64_t drawn = (uint64_t)(random * (double)mass) + 1;
  return least(drawn, mass);
}

TK_DEVICE int32_t sampleRow(const float *logits, const tenon_draw &draw, uint64_t *space) {
  Tokens t = {logits, draw.ids, 0, draw.inverse_temperature, NoKey - 1, space};
  int32_t best = findBest(logits, t.count, space, t.best);
  if (!(t.perUnit > 0) || !(t.best > -infinity() && t.best < infinity()))
    return best;
  if (draw.top_k > 0 && sumOf(t, CountOne()) > (uint64_t)draw.top_k)
    t.last = findByKey(t, (uint64_t)draw.top_k, CountOne()).key;
  uint64_t mass = sumOf(t, CountWeight());
  uint64_t upToP = (uint64_t)(draw.top_p * (double)mass);
  upToP += (double)upToP < draw.top_p * (double)mass || upToP == 0;
  if (draw.min_p > 0) {
    float distance = -logarithm(draw.min_p);
    if (distance < LargestDistance)
      t.last = least(t.last, (uint32_t)(distance * KeyUnit));
    mass = sumOf(t, CountWeight());
  }
  if (!(draw.top_p < 1))
    return findById(t, drawFrom(mass, draw.random), CountWeight());

  // Which of those with the same key is told by how much is still asked for.
  auto rankAt = [](const Reached &at, uint64_t asked) {
    uint64_t each = weightOf(at.key);
    return (asked - at.before + each - 1) / each;
  };
  if (upToP < mass) {
    Reached at = findByKey(t, upToP, CountWeight());
    mass = at.before + rankAt(at, upToP) * weightOf(at.key);
  }
  uint64_t asked = drawFrom(mass, draw.random);
  Reached at = findByKey(t, asked, CountWeight());
  return findById(t, rankAt(at, asked), CountKey{at.key});
}

} // namespace tk

TK_DEVICE void tk_sample(const tk_sample_shape &s, const tk_args &args) {
  const float *logits = (const float *)args.io[0] + tk::blockY() * s.vocab;
  const tenon_draw *draws = (const tenon_draw *)args.io[1];
  int32_t *out = (int32_t *)args.io[2];
  int32_t id = tk::sampleRow(logits, draws[tk::blockY()], (uint64_t *)tk::shared());
  if (tk::threadIndex() == 0)
    out[tk::blockY()] = id;
}

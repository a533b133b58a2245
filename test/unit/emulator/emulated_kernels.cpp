// Right kernels, and wrong ones: each of these has the one fault that its name says.
#include "Operands.h"
#include "codegen/cuda/kernels/device.h"

using namespace tk;

namespace {

#define KERNEL(name) void name([[maybe_unused]] const Operands &o)

// ── what threads do together ───────────────────────────────────────────────────────────────────

KERNEL(places) {
  int64_t block = blockY() * gridX() + blockX();
  ((int64_t *)o.out)[block * threadCount() + threadIndex()] =
      1000000 * block + 10000 * warps() + 100 * warp() + lane() + gridY();
}

// Each warp's lanes reversed, and summed.
KERNEL(shuffles) {
  float v = ((float *)o.in)[threadIndex()];
  float sum = v;
  for (int step = 16; step; step /= 2)
    sum += shuffleXor(sum, step);
  ((float *)o.out)[2 * threadIndex()] = shuffle(v, 31 - lane());
  ((float *)o.out)[2 * threadIndex() + 1] = sum;
}

KERNEL(votes) {
  int32_t v = ((int32_t *)o.in)[threadIndex()];
  ((uint32_t *)o.out)[2 * threadIndex()] = ballotLanes(v > 0);
  ((uint32_t *)o.out)[2 * threadIndex() + 1] = anyLane(v > 5);
}

// A block's sum, through shared memory.
KERNEL(blockSum) {
  float *partial = (float *)shared();
  partial[threadIndex()] = ((float *)o.in)[threadIndex()];
  sync();
  for (int half = threadCount() / 2; half; half /= 2) {
    if (threadIndex() < half)
      partial[threadIndex()] += partial[threadIndex() + half];
    sync();
  }
  if (threadIndex() == 0)
    ((float *)o.out)[blockX()] = partial[0];
}

KERNEL(atomics) {
  atomicAdd((float *)o.out, 1.0f);
  atomicAdd((int32_t *)o.out + 1, threadIndex());
  atomicMax((int32_t *)o.out + 2, threadIndex());
  atomicAdd((uint64_t *)o.out + 2, (uint64_t)threadIndex() << 32);
}

// Programmatic dependent launch: right, too early, and never.
KERNEL(awaits) {
  prefetchLine(o.in);
  awaitLaunch();
  o.out[threadIndex()] = o.in[threadIndex()];
}
KERNEL(readsEarly) {
  char v = o.in[threadIndex()];
  awaitLaunch();
  o.out[threadIndex()] = v;
}
KERNEL(neverAwaits) {}

// The second of two groups is still on its way when the first is read.
KERNEL(copies) {
  char *own = shared() + 32 * threadIndex();
  const char *from = o.in + 32 * threadIndex();
  copyAsync16(own, from);
  commitCopies();
  copyAsync16(own + 16, from + 16);
  commitCopies();
  waitCopies(int(o.value));
  sync();
  int other = (threadIndex() + 1) % threadCount();
  for (int i = 0; i < 32; i += 16)
    storeWords4(o.out + 32 * threadIndex() + i, loadWords4(shared() + 32 * other + i));
}

// Without the barrier behind the wait.
KERNEL(copiesUnseen) {
  copyAsync16(shared() + 16 * threadIndex(), o.in + 16 * threadIndex());
  commitCopies();
  waitCopies(0);
  storeWords4(o.out + 16 * threadIndex(), loadWords4(shared() + 16 * (threadIndex() ^ 1)));
}
KERNEL(copyNotShared) { copyAsync16(o.out + 16 * threadIndex(), o.in + 16 * threadIndex()); }

// Registers of lane l: a at in + 16 l, b at in + 512 + 8 l, c at out + 16 l.
template <typename C, typename Multiply> void mma(const Operands &o, Multiply multiply) {
  auto *words = (const uint32_t *)o.in;
  uint32_t a[4], b[2];
  for (int i = 0; i < 4; ++i)
    a[i] = words[4 * lane() + i];
  for (int i = 0; i < 2; ++i)
    b[i] = words[128 + 2 * lane() + i];
  C c[4];
  for (int i = 0; i < 4; ++i)
    c[i] = ((C *)o.out)[4 * lane() + i];
  multiply(c, a, b);
  for (int i = 0; i < 4; ++i)
    ((C *)o.out)[4 * lane() + i] = c[i];
}
KERNEL(bf16) { mma<float>(o, mmaBf16); }
KERNEL(half) { mma<float>(o, mmaHalf); }
KERNEL(int8) { mma<int32_t>(o, mmaInt8); }
KERNEL(uint8) { mma<int32_t>(o, mmaUint8); }

// ── not together ───────────────────────────────────────────────────────────────────────────────

KERNEL(barrierOfSome) {
  if (threadIndex() != o.value)
    sync();
}
KERNEL(barrierInShuffle) {
  if (lane() < 16)
    sync();
  else
    shuffleXor(1.0f, 1);
}
KERNEL(shuffleOfSome) {
  if (lane() != 7)
    shuffleXor(1.0f, 1);
}
KERNEL(twoOperations) {
  if (lane() < 16)
    shuffleXor(1.0f, 1);
  else
    ballotLanes(true);
}
KERNEL(warpBarrierOfSome) {
  if (lane() < 31)
    syncWarp();
}

// ── elsewhere ──────────────────────────────────────────────────────────────────────────────────

KERNEL(writeAt) {
  if (threadIndex() == 33)
    o.out[o.value] = 1;
}
KERNEL(readAt) {
  if (threadIndex() == 33)
    o.out[0] = o.in[o.value];
}
KERNEL(writeSharedAt) {
  if (threadIndex() == 33)
    shared()[o.value] = 1;
}
KERNEL(wordAt) { ((float *)o.out)[0] = *(const float *)(o.in + o.value); }
KERNEL(loadAt) { storeWords4(o.out, loadWords4(o.in + o.value)); }
KERNEL(updateAt) { atomicAdd((int32_t *)(o.out + o.value), 1); }
KERNEL(divide) { ((int32_t *)o.out)[0] = 7 / int32_t(o.value); }

volatile int depth = 1 << 20;
[[gnu::noinline]] int recurse(int n) {
  volatile char frame[512];
  frame[n % 512] = char(n);
  return n ? recurse(n - 1) + frame[n % 512] : 0;
}
KERNEL(deep) { ((int32_t *)o.out)[0] = recurse(depth); }

// ── races ──────────────────────────────────────────────────────────────────────────────────────

// value: 0 nothing, 1 syncWarp, 2 sync between writes and reads of a neighbour; 3: of another warp
KERNEL(neighbours) {
  float *values = (float *)shared();
  values[threadIndex()] = 1;
  if (o.value == 1)
    syncWarp();
  if (o.value == 2)
    sync();
  ((float *)o.out)[threadIndex()] = values[threadIndex() ^ 1];
}
KERNEL(otherWarp) {
  float *values = (float *)shared();
  values[threadIndex()] = 1;
  syncWarp();
  ((float *)o.out)[threadIndex()] = values[(threadIndex() + 32) % threadCount()];
}
// Everybody reads, then one writes.
KERNEL(overwriteRead) {
  float *values = (float *)shared();
  if (threadIndex() == 0)
    values[0] = 1;
  sync();
  float v = values[0];
  if (o.value)
    sync();
  if (threadIndex() == 5)
    values[0] = 2;
  ((float *)o.out)[threadIndex()] = v;
}
KERNEL(allWriteTheSame) { ((float *)o.out)[0] = 1; }
KERNEL(blocksShareOutput) {
  if (threadIndex() == 0)
    o.out[blockX() / o.value] = 1;
}
KERNEL(blockReadsAnothers) {
  if (threadIndex() == 0) {
    ((int32_t *)o.out)[blockX()] = 1;
    ((int32_t *)o.out)[gridX() + blockX()] = ((int32_t *)o.out)[o.value ? blockX() : 0];
  }
}
KERNEL(bytesOfOneWord) { o.out[threadIndex()] = char(threadIndex()); }
KERNEL(byteAndWord) {
  if (threadIndex() == 0)
    ((int32_t *)o.out)[0] = 0;
  if (threadIndex() == 40)
    o.out[3] = 1;
}
KERNEL(atomicAndPlain) {
  if (threadIndex() < 32)
    atomicAdd((int32_t *)o.out, 1);
  else
    ((int32_t *)o.out)[1] = ((int32_t *)o.out)[0];
}

} // namespace

tenon::emulator::Entry findKernel(const char *name) {
#define FIND(kernel)                                                                               \
  if (!__builtin_strcmp(name, #kernel))                                                            \
    return [](const void *o) { kernel(*(const Operands *)o); };
  FIND(places)
  FIND(shuffles)
  FIND(votes)
  FIND(blockSum)
  FIND(awaits)
  FIND(readsEarly)
  FIND(neverAwaits)
  FIND(atomics)
  FIND(copies)
  FIND(copiesUnseen)
  FIND(copyNotShared)
  FIND(bf16)
  FIND(half)
  FIND(int8)
  FIND(uint8)
  FIND(barrierOfSome)
  FIND(barrierInShuffle)
  FIND(shuffleOfSome)
  FIND(twoOperations)
  FIND(warpBarrierOfSome)
  FIND(writeAt)
  FIND(readAt)
  FIND(writeSharedAt)
  FIND(wordAt)
  FIND(loadAt)
  FIND(updateAt)
  FIND(divide)
  FIND(deep)
  FIND(neighbours)
  FIND(otherWarp)
  FIND(overwriteRead)
  FIND(allWriteTheSame)
  FIND(blocksShareOutput)
  FIND(blockReadsAnothers)
  FIND(bytesOfOneWord)
  FIND(byteAndWord)
  FIND(atomicAndPlain)
  return nullptr;
}

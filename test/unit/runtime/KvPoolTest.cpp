// The paged cache: owners are counted, shared blocks are copied before they change, exhaustion
// changes nothing.
#include "runtime/KvPool.h"

#include <gtest/gtest.h>

#include <optional>

using namespace tenon::rt;

namespace {
constexpr int layers = 3, blockBytes = 64, B = TENON_BLOCK_TOKENS;
constexpr tenon_cache_layout layout = {layers, 1, blockBytes, 0};

char &byteAt(KvPool &pool, int layer, int32_t block) {
  return pool.base()[(layer * pool.blocks() + block) * blockBytes];
}
} // namespace

TEST(KvPool, BlocksComeWithTokensAndGoBack) {
  KvPool pool(layout, 4);
  {
    KvSequence sequence(pool);
    sequence.append(1);
    EXPECT_EQ(sequence.blocks().size(), 1u);
    sequence.append(B - 1);
    EXPECT_EQ(sequence.blocks().size(), 1u);
    sequence.append(1);
    EXPECT_EQ(sequence.blocks().size(), 2u);
    EXPECT_EQ(sequence.length(), B + 1);
    EXPECT_EQ(pool.freeBlocks(), 2);
    sequence.truncate(B);
    EXPECT_EQ(pool.freeBlocks(), 3);
  }
  EXPECT_EQ(pool.freeBlocks(), 4);
}

TEST(KvPool, ForkSharesUntilAppend) {
  KvPool pool(layout, 8);
  KvSequence parent(pool);
  parent.append(B + 5);
  for (int layer = 0; layer < layers; ++layer)
    byteAt(pool, layer, parent.blocks()[1]) = static_cast<char>(layer + 1);

  KvSequence child = parent.fork();
  EXPECT_EQ(child.blocks(), parent.blocks());
  EXPECT_EQ(pool.owners(parent.blocks()[0]), 2);
  EXPECT_EQ(pool.freeBlocks(), 6);

  child.append(1); // copies the half-filled block in every layer, leaves the full one shared
  EXPECT_EQ(child.blocks()[0], parent.blocks()[0]);
  ASSERT_NE(child.blocks()[1], parent.blocks()[1]);
  EXPECT_EQ(pool.owners(parent.blocks()[1]), 1);
  EXPECT_EQ(pool.owners(child.blocks()[1]), 1);
  for (int layer = 0; layer < layers; ++layer)
    EXPECT_EQ(byteAt(pool, layer, child.blocks()[1]), layer + 1);

  int32_t own = parent.blocks()[1];
  parent.append(1); // the only owner now: no copy
  EXPECT_EQ(parent.blocks()[1], own);
}

TEST(KvPool, ForkAtBlockBoundaryCopiesNothing) {
  KvPool pool(layout, 4);
  KvSequence parent(pool);
  parent.append(B);
  KvSequence child = parent.fork();
  child.append(1);
  EXPECT_EQ(child.blocks()[0], parent.blocks()[0]);
  EXPECT_EQ(pool.owners(parent.blocks()[0]), 2);
  EXPECT_EQ(pool.freeBlocks(), 2);
}

TEST(KvPool, TruncateInsideSharedBlockThenAppendCopies) {
  KvPool pool(layout, 4);
  KvSequence parent(pool);
  parent.append(B);
  KvSequence child = parent.fork();
  child.truncate(3);
  child.append(1);
  EXPECT_NE(child.blocks()[0], parent.blocks()[0]);
}

TEST(KvPool, ExhaustionIsTypedAndChangesNothing) {
  KvPool pool(layout, 2);
  KvSequence first(pool), second(pool);
  first.append(B + 1);
  std::vector<int32_t> before = first.blocks();
  EXPECT_THROW(second.append(1), KvExhausted);
  EXPECT_EQ(second.length(), 0);
  EXPECT_TRUE(second.blocks().empty());
  EXPECT_THROW(first.append(10 * B), KvExhausted);
  EXPECT_EQ(first.blocks(), before);
  EXPECT_EQ(first.length(), B + 1);
  first.append(B - 1); // fits in what it has
  KvSequence fork = first.fork();
  EXPECT_THROW(fork.append(1), KvExhausted);
  first.truncate(0);
  fork.truncate(B);
  second.append(B);
  EXPECT_EQ(pool.freeBlocks(), 0);
}

TEST(KvPool, CopyOnWriteNeedsAFreeBlockToo) {
  KvPool pool(layout, 1);
  KvSequence parent(pool);
  parent.append(1);
  std::optional<KvSequence> child = parent.fork();
  EXPECT_THROW(child->append(1), KvExhausted);
  EXPECT_EQ(child->blocks(), parent.blocks());
  child.reset();
  parent.append(1);
  EXPECT_EQ(parent.length(), 2);
}

TEST(KvPool, MovingKeepsOneOwner) {
  KvPool pool(layout, 2);
  std::vector<KvSequence> sequences;
  for (int i = 0; i < 2; ++i) {
    sequences.emplace_back(pool);
    sequences.back().append(1);
  }
  KvSequence moved = std::move(sequences[0]);
  EXPECT_EQ(moved.length(), 1);
  EXPECT_EQ(pool.owners(moved.blocks()[0]), 1);
  sequences.clear();
  EXPECT_EQ(pool.freeBlocks(), 1);
}

TEST(KvPool, ReservationCostsNothingAndImpossibleOnesAreRefused) {
  KvPool large({4, 2, 1 << 18, 1 << 18}, 1 << 14); // 64 GiB of addresses
  KvSequence sequence(large);
  sequence.append(1);
  large.base()[0] = 1;
  EXPECT_THROW(KvPool({1 << 20, 1, int64_t(1) << 40, 0}, 1 << 20), Error);
  EXPECT_THROW(KvPool({1, 1, 64, 0}, int64_t(1) << 40), Error);
}

// A block that two sequences share is copied as a whole: keys and values of each head of each
// layer.
TEST(KvPool, CopiesEveryStrip) {
  constexpr int64_t keyBytes = 48, valueBytes = 16, heads = 3, blocks = 4;
  KvPool pool({layers, heads, keyBytes, valueBytes}, blocks);
  KvSequence parent(pool);
  parent.append(1);
  auto forEachStrip = [&](auto f) {
    char *strip = pool.base();
    for (int layer = 0; layer < layers; ++layer)
      for (int64_t bytes : {keyBytes, valueBytes})
        for (int head = 0; head < heads; ++head, strip += blocks * bytes)
          f(strip, bytes, static_cast<char>(1 + (layer * 2 + (bytes == keyBytes)) * heads + head));
  };
  int32_t from = parent.blocks()[0];
  forEachStrip([&](char *strip, int64_t bytes, char mark) {
    std::fill_n(strip + from * bytes, bytes, mark);
  });
  KvSequence child = parent.fork();
  child.append(1);
  int32_t to = child.blocks()[0];
  ASSERT_NE(from, to);
  forEachStrip([&](char *strip, int64_t bytes, char mark) {
    for (int64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(strip[to * bytes + i], mark);
      ASSERT_EQ(strip[from * bytes + i], mark);
    }
  });
}

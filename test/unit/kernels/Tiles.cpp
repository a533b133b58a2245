// AMX by emulation. A CPU without it traps on each of its instructions, and the kernel sends
// SIGILL: the handler does what the instruction would have done and goes on behind it. So tests run
// the very code that an AMX machine runs.
//
// The emulation is stricter than a CPU need be: shapes that an instruction refuses, registers that
// are not configured and a thread that ends with its registers configured all end the test.
#include "Tiles.h"
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

struct Tile {
  int rows, rowBytes;
  uint8_t data[16][64];
};

struct Tiles {
  bool configured;
  Tile tile[8];

  ~Tiles() { require(!configured, "a thread ended without tilerelease"); }

  static void require(bool holds, const char *problem) {
    if (holds)
      return;
    std::fprintf(stderr, "AMX: %s\n", problem);
    std::abort();
  }

  Tile &at(int index) {
    require(configured, "no tile configuration was loaded");
    require(index < 8 && tile[index].rows > 0, "a tile that is not configured");
    return tile[index];
  }

  void configure(const uint8_t *config) {
    require(config[0] == 1 && config[1] == 0, "a palette other than 1, or a start row");
    for (int i = 2; i < 64; ++i)
      require(i == 16 || (i > 16 && i < 32) || (i >= 48 && i < 56) || config[i] == 0,
              "reserved bytes that are not zero");
    for (int t = 0; t < 8; ++t) {
      uint16_t rowBytes;
      std::memcpy(&rowBytes, config + 16 + 2 * t, 2);
      require(config[48 + t] <= 16 && rowBytes <= 64, "a shape beyond 16 rows of 64 bytes");
      require((config[48 + t] == 0) == (rowBytes == 0), "rows without bytes or bytes without rows");
      tile[t] = {config[48 + t], rowBytes, {}};
    }
    configured = true;
  }

  // sums[m][n] += Σ a[m][k] · b[k / 4][n][k % 4]
  void dot(Tile &sums, const Tile &a, const Tile &b, bool aSigned, bool bSigned) {
    require(sums.rows == a.rows && sums.rowBytes == b.rowBytes && a.rowBytes == 4 * b.rows,
            "shapes that cannot be multiplied");
    for (int m = 0; m < sums.rows; ++m)
      for (int n = 0; n < sums.rowBytes / 4; ++n) {
        uint32_t sum;
        std::memcpy(&sum, sums.data[m] + 4 * n, 4);
        for (int k = 0; k < a.rowBytes; ++k) {
          uint8_t x = a.data[m][k], y = b.data[k / 4][4 * n + k % 4];
          sum += uint32_t((aSigned ? int8_t(x) : x) * (bSigned ? int8_t(y) : y));
        }
        std::memcpy(sums.data[m] + 4 * n, &sum, 4);
      }
  }
};

thread_local Tiles tiles;

// An instruction: VEX prefix C4, opcode map 0F38, then ModRM and what follows it.
//
//   C4   R̅X̅B̅mmmmm   Wv̅v̅v̅v̅Lpp   opcode   mod reg r/m   [SIB]   [displacement]
class Instruction {
public:
  explicit Instruction(mcontext_t &machine) : machine(machine) {
    at = code();
    prefix = at[2] & 3;
    opcode = at[3];
    mode = at[4] >> 6;
    reg = at[4] >> 3 & 7;
    rm = at[4] & 7;
    source = ~at[2] >> 3 & 15;
  }

  bool isKnown() const {
    return at[0] == 0xc4 && (at[1] & 0x1f) == 2 && !(at[2] & 0x84) &&
           (opcode == 0x49 || opcode == 0x4b || opcode == 0x5e);
  }

  void run() {
    at += 5;
    if (opcode == 0x5e) { // tdp{bssd,bsud,busd,buud}
      bool aSigned = prefix == 3 || prefix == 2, bSigned = prefix == 3 || prefix == 1;
      Tiles::require(reg != rm && reg != source && rm != source, "a dot that names a tile twice");
      tiles.dot(tiles.at(reg), tiles.at(rm), tiles.at(source), aSigned, bSigned);
    } else if (opcode == 0x49 && mode == 3 && prefix == 3) { // tilezero
      std::memset(tiles.at(reg).data, 0, sizeof(Tile::data));
    } else if (opcode == 0x49 && mode == 3) { // tilerelease
      tiles.configured = false;
    } else if (opcode == 0x49) { // ldtilecfg
      Tiles::require(prefix == 0, "sttilecfg is not emulated");
      tiles.configure(reinterpret_cast<const uint8_t *>(address(nullptr)));
    } else { // tileloadd, tileloaddt1, tilestored
      Tile &tile = tiles.at(reg);
      int64_t stride = 0;
      char *memory = address(&stride);
      for (int r = 0; r < tile.rows; ++r) {
        if (prefix == 2) {
          std::memcpy(memory + r * stride, tile.data[r], tile.rowBytes);
          continue;
        }
        std::memset(tile.data[r], 0, 64);
        std::memcpy(tile.data[r], memory + r * stride, tile.rowBytes);
      }
    }
    machine.gregs[REG_RIP] = reinterpret_cast<greg_t>(at);
  }

private:
  const uint8_t *code() const { return reinterpret_cast<const uint8_t *>(machine.gregs[REG_RIP]); }

  int64_t read(int number) const {
    static constexpr int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                        REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                        REG_R12, REG_R13, REG_R14, REG_R15};
    return machine.gregs[registers[number]];
  }

  // The memory operand. With `stride` the index is the distance of rows, else it belongs to the
  // address.
  char *address(int64_t *stride) {
    int extendBase = at[-4] & 0x20 ? 0 : 8, extendIndex = at[-4] & 0x40 ? 0 : 8;
    int base = rm | extendBase;
    int64_t index = 0;
    if (rm == 4) {
      uint8_t sib = *at++;
      base = (sib & 7) | extendBase;
      if (int number = (sib >> 3 & 7) | extendIndex; number != 4)
        index = read(number) << (sib >> 6);
    }
    Tiles::require(!stride || rm == 4, "rows without a stride");
    bool noBase = mode == 0 && (base & 7) == 5;
    int64_t result = noBase ? 0 : read(base);
    if (mode == 1) {
      result += int8_t(*at++);
    } else if (mode == 2 || noBase) {
      int32_t displacement;
      std::memcpy(&displacement, at, 4);
      at += 4;
      result += displacement;
      if (noBase && rm != 4) // counted from the next instruction
        result += reinterpret_cast<int64_t>(at);
    }
    if (stride)
      *stride = index;
    else
      result += index;
    return reinterpret_cast<char *>(result);
  }

  mcontext_t &machine;
  const uint8_t *at;
  int prefix, opcode, mode, reg, rm, source; // prefix: 0 none, 1 66, 2 F3, 3 F2
};

void onIllegalInstruction(int, siginfo_t *, void *context) {
  Instruction instruction(static_cast<ucontext_t *>(context)->uc_mcontext);
  if (instruction.isKnown())
    return instruction.run();
  std::signal(SIGILL, SIG_DFL); // it traps again
}

} // namespace

void enableTiles() {
  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: refused where there are no tiles.
  if (syscall(SYS_arch_prctl, 0x1023, 18) == 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = onIllegalInstruction;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
}

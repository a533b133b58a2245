// Faults of the processor: a guard page was touched, an integer divided by zero.
#include "test/emulator/Machine.h"
#include <csignal>
#include <ucontext.h>

using namespace tenon::emulator;

struct FaultHandler::State {
  stack_t stack;
  struct sigaction segv, bus, fpe;
};

namespace {

struct {
  int signal;
  const char *address;
  bool write;
} caught;

alignas(64) char emergencyStack[64 << 10];
struct sigaction previous[3]; // of SIGSEGV, SIGBUS, SIGFPE

struct sigaction &previousOf(int signal) {
  return previous[signal == SIGSEGV ? 0 : signal == SIGBUS ? 1 : 2];
}

// Goes on in place of the instruction that faulted, on a stack that has room.
[[noreturn]] void report() {
  Machine &machine = Machine::get();
  const GuardedPages *stack = machine.thread().fibre.memory();
  machine.fault([&machine, stack]() -> std::string {
    if (caught.signal == SIGFPE)
      return "divides an integer by zero";
    if (stack->isGuard(caught.address))
      return "needs more stack than there is: " + std::to_string(stack->end() - stack->begin()) +
             " bytes";
    return (caught.write ? "writes " : "reads ") + machine.describe(caught.address);
  });
}

void handle(int signal, siginfo_t *info, void *context) {
  if (!Machine::get().isRunning()) { // not ours: let it happen again to whom it concerns
    sigaction(signal, &previousOf(signal), nullptr);
    return;
  }
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  caught = {signal, static_cast<const char *>(info->si_addr), (registers[REG_ERR] & 2) != 0};
  registers[REG_RIP] = greg_t(&report);
  // As behind a call instruction.
  registers[REG_RSP] = greg_t(emergencyStack + sizeof emergencyStack - 8);
}

} // namespace

FaultHandler::FaultHandler() : before(std::make_unique<State>()) {
  stack = std::make_unique<GuardedPages>(64 << 10);
  stack_t own = {};
  own.ss_sp = stack->begin();
  own.ss_size = size_t(stack->end() - stack->begin());
  sigaltstack(&own, &before->stack);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before->segv);
  sigaction(SIGBUS, &action, &before->bus);
  sigaction(SIGFPE, &action, &before->fpe);
  previous[0] = before->segv;
  previous[1] = before->bus;
  previous[2] = before->fpe;
}

FaultHandler::~FaultHandler() {
  sigaction(SIGSEGV, &before->segv, nullptr);
  sigaction(SIGBUS, &before->bus, nullptr);
  sigaction(SIGFPE, &before->fpe, nullptr);
  sigaltstack(&before->stack, nullptr);
}

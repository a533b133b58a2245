#include "test/emulator/Fibre.h"
#include <new>
#include <sys/mman.h>

#ifndef __x86_64__
#error "the emulator switches stacks as x86-64 does"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TENON_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_ASAN 1
#endif
#endif
#ifdef TENON_ASAN
#include <sanitizer/asan_interface.h>
#endif

using namespace tenon::emulator;

// AddressSanitizer must be told of each switch: leave(..., the stack to run on) by who leaves,
// arrive(..., the stack that was left) by who goes on.
#ifdef TENON_ASAN
static void leave(void **fake, const void *to, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, to, bytes);
}
static void arrive(void *fake, const void **from, size_t *bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
// A fibre that was released left its frames.
static void forgetFrames(const GuardedPages &stack) {
  __asan_unpoison_memory_region(stack.begin(), stack.end() - stack.begin());
}
#else
static void leave(void **, const void *, size_t) {}
static void arrive(void *, const void **, size_t *) {}
static void forgetFrames(const GuardedPages &) {}
#endif

static constexpr size_t Page = 4096, StackBytes = 256 << 10;

GuardedPages::GuardedPages(size_t bytes) : length((bytes + Page - 1) / Page * Page) {
  void *all = mmap(nullptr, length + 2 * Page, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    throw std::bad_alloc();
  first = static_cast<char *>(all) + Page;
  mprotect(first, length, PROT_READ | PROT_WRITE);
}

GuardedPages::~GuardedPages() { munmap(first - Page, length + 2 * Page); }

bool GuardedPages::isGuard(const void *p) const {
  return (p >= first - Page && p < first) || (p >= end() && p < end() + Page);
}

std::unique_ptr<GuardedPages> StackPool::take() {
  if (free.empty())
    return std::make_unique<GuardedPages>(StackBytes);
  std::unique_ptr<GuardedPages> stack = std::move(free.back());
  free.pop_back();
  return stack;
}

// tenon_emulator_switch(&from, to): pushes what a function must preserve, leaves the stack pointer
// in `from`, and goes on where `to` was left.
extern "C" void tenon_emulator_switch(void **from, void *to);
asm(R"(
.pushsection .text
.type tenon_emulator_switch, @function
.hidden tenon_emulator_switch
.globl tenon_emulator_switch
tenon_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_emulator_switch, . - tenon_emulator_switch

# The first thing that a new stack returns to: its fibre was left in %r12.
.type tenon_emulator_begin, @function
.hidden tenon_emulator_begin
.globl tenon_emulator_begin
tenon_emulator_begin:
  movq %r12, %rdi
  callq *%rbx
  ud2
.size tenon_emulator_begin, . - tenon_emulator_begin
.popsection
)");
extern "C" void tenon_emulator_begin();

void Fibre::start(Body newBody, void *newArgument) {
  if (!stack)
    stack = pool.take();
  body = newBody;
  argument = newArgument;
  ended = false;
  ownFake = nullptr;
  forgetFrames(*stack);
  // As tenon_emulator_switch would have left it: r15 r14 r13 r12 rbx rbp, return address.
  void **top = reinterpret_cast<void **>(stack->end()) - 9;
  top[3] = this;
  top[4] = reinterpret_cast<void *>(&Fibre::enter);
  top[5] = nullptr;
  top[6] = reinterpret_cast<void *>(&tenon_emulator_begin);
  own = top;
}

void Fibre::enter(Fibre *self) {
  arrive(nullptr, &self->callerStack, &self->callerBytes);
  self->body(self->argument);
  self->ended = true;
  leave(nullptr, self->callerStack, self->callerBytes);
  void *gone;
  tenon_emulator_switch(&gone, self->caller);
}

bool Fibre::resume() {
  leave(&callerFake, stack->begin(), stack->end() - stack->begin());
  tenon_emulator_switch(&caller, own);
  arrive(callerFake, nullptr, nullptr);
  if (ended)
    release();
  return !ended;
}

void Fibre::suspend() {
  leave(&ownFake, callerStack, callerBytes);
  tenon_emulator_switch(&own, caller);
  arrive(ownFake, &callerStack, &callerBytes);
}

void Fibre::release() {
  ended = true;
  if (stack)
    pool.give(std::move(stack));
}

// A fibre: a function that runs on a stack of its own until it ends or suspends itself.
//
//   resume() ──▶ body ... suspend() ──▶ behind resume()      resume() ──▶ behind suspend() ...
#ifndef TENON_TEST_EMULATOR_FIBRE_H
#define TENON_TEST_EMULATOR_FIBRE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::emulator {

// Memory between two pages that nobody may touch. New pages are zero and cost nothing until used.
class GuardedPages {
public:
  explicit GuardedPages(size_t bytes);
  ~GuardedPages();
  GuardedPages(const GuardedPages &) = delete;
  GuardedPages &operator=(const GuardedPages &) = delete;

  char *begin() const { return first; }
  char *end() const { return first + length; }
  bool isGuard(const void *p) const; // in one of the two pages

private:
  char *first;
  size_t length;
};

// Stacks are kept: most fibres of a kernel without barriers use the same one, which stays cached.
class StackPool {
public:
  std::unique_ptr<GuardedPages> take();
  void give(std::unique_ptr<GuardedPages> stack) { free.push_back(std::move(stack)); }

private:
  std::vector<std::unique_ptr<GuardedPages>> free;
};

class Fibre {
public:
  using Body = void (*)(void *argument);

  explicit Fibre(StackPool &pool) : pool(pool) {}
  ~Fibre() { release(); }
  Fibre(const Fibre &) = delete;
  Fibre &operator=(const Fibre &) = delete;

  void start(Body body, void *argument);
  // Runs the body until it suspends or ends. False: it has ended.
  bool resume();
  // By the body only: back to who resumed it.
  void suspend();
  // What it would still do is not done, and nothing on its stack is destroyed.
  void release();

  const GuardedPages *memory() const { return stack.get(); }

private:
  static void enter(Fibre *self);

  StackPool &pool;
  std::unique_ptr<GuardedPages> stack;
  void *own = nullptr, *caller = nullptr; // stack pointers of who does not run
  Body body = nullptr;
  void *argument = nullptr;
  bool ended = true;
  // What AddressSanitizer knows of the two stacks.
  void *ownFake = nullptr, *callerFake = nullptr;
  const void *callerStack = nullptr;
  size_t callerBytes = 0;
};

} // namespace tenon::emulator

#endif // TENON_TEST_EMULATOR_FIBRE_H

// The executable's entry.
#include "runtime/Compiled.h"
#include "runtime/cli/Cli.h"

#include <climits>
#include <unistd.h>

int main(int argc, char **argv) {
  const char *self = "/proc/self/exe";
  char name[PATH_MAX];
  ssize_t length = readlink(self, name, sizeof name);
  return tenon::rt::runCli(
      {tenonCompiled, self, length > 0 ? std::string(name, name + length) : argv[0], {}}, argc,
      argv);
}

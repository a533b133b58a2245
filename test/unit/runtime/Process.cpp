#include "Process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace toy {

std::string executable(const std::string &name, const Sections &sections) {
  writeFile(path(name), append(readFile(TENON_TEST_TOY), sections));
  chmod(path(name).c_str(), 0755);
  return path(name);
}

Result run(const std::string &program, std::vector<std::string> arguments,
           const std::string &input) {
  writeFile(path("stdin"), input);
  arguments.insert(arguments.begin(), program);
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = fork();
  if (child == 0) {
    dup2(open(path("stdin").c_str(), O_RDONLY), 0);
    dup2(open(path("stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(path("stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), readFile(path("stdout")),
          readFile(path("stderr"))};
}

void expectRefused(const Result &result, int code, const std::string &part) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

nlohmann::json parse(const Result &result) {
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

} // namespace toy

// See Linker.h.
#include "codegen/Linker.h"
#include "codegen/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

// The first line that a linker wrote about an error.
static std::string firstLine(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().split('\n').first.str() : std::string();
}

static void addRuntime(std::vector<std::string> &arguments, LinkForm form,
                       llvm::StringRef libraryFolder) {
  if (form == LinkForm::library) {
    arguments.push_back("-shared");
    arguments.push_back("-Wl,-u,tenon_open");
    arguments.push_back(("-Wl,--version-script=" + libraryFolder + "/tenon/tenon.map").str());
  } else {
    arguments.push_back((libraryFolder + "/libtenon_main.a").str());
  }
  for (const char *library : {"/libtenon_runtime.a", "/libtenon_tokenizer.a"})
    arguments.push_back((libraryFolder + library).str());
  for (const char *argument :
       {"-l:libpcre2-8.a", "-l:libutf8proc.a", "-static-libstdc++", "-static-libgcc",
        "-Wl,--gc-sections", "-Wl,-S", "-pthread", "-ldl", "-lm"})
    arguments.push_back(argument);
}

llvm::Error linkObjects(llvm::ArrayRef<std::string> objects, LinkForm form,
                        llvm::StringRef libraryFolder, llvm::StringRef output) {
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName("c++");
  if (!compiler)
    return lacking("cannot link: no C++ compiler 'c++' on the PATH");

  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("tenon", folder))
    return lacking("cannot make a temporary folder: " + code.message());
  auto cleanup = llvm::scope_exit([&] { (void)llvm::sys::fs::remove_directories(folder); });

  std::vector<std::string> arguments{*compiler, "-o", output.str()};
  for (auto [i, object] : llvm::enumerate(objects)) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, std::to_string(i) + ".o");
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    if (code)
      return lacking("cannot write " + path + ": " + code.message());
    stream << object;
    arguments.push_back(path.str().str());
  }
  if (form == LinkForm::object)
    arguments.insert(arguments.end(), {"-r", "-nostdlib"});
  else
    addRuntime(arguments, form, libraryFolder);
  if (llvm::sys::findProgramByName("ld.lld"))
    arguments.push_back("-fuse-ld=lld");

  llvm::SmallString<128> log(folder);
  llvm::sys::path::append(log, "log");
  std::vector<llvm::StringRef> references(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(log),
                                                llvm::StringRef(log)};
  if (llvm::sys::ExecuteAndWait(*compiler, references, std::nullopt, redirects) != 0)
    return lacking("cannot link " + output + ": " + firstLine(log));
  return llvm::Error::success();
}

} // namespace tenon

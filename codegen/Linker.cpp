// See Linker.h.
#include "codegen/Linker.h"
#include "codegen/Error.h"
#include "llvm/ADT/STLExtras.h"
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

namespace {
// The system's C++ compiler, and a folder for what it reads and writes.
class HostCompiler {
public:
  static llvm::Expected<HostCompiler> open(llvm::StringRef purpose) {
    HostCompiler result;
    llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("c++");
    if (!found)
      return lacking("cannot " + purpose + ": no C++ compiler 'c++' on the PATH");
    result.program = *found;
    if (std::error_code code = llvm::sys::fs::createUniqueDirectory("tenon", result.folder))
      return lacking("cannot make a temporary folder: " + code.message());
    return result;
  }
  HostCompiler(HostCompiler &&other) noexcept
      : program(std::move(other.program)), folder(std::move(other.folder)) {
    other.folder.clear();
  }
  ~HostCompiler() {
    if (!folder.empty())
      (void)llvm::sys::fs::remove_directories(folder);
  }

  std::string getPath(const llvm::Twine &name) const { return (folder + "/" + name).str(); }

  llvm::Error write(llvm::StringRef path, llvm::StringRef text) const {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    stream << text;
    stream.flush();
    if (!code && stream.has_error())
      code = stream.error();
    stream.clear_error();
    return code ? lacking("cannot write " + path + ": " + code.message()) : llvm::Error::success();
  }

  llvm::Error run(llvm::StringRef purpose, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program);
    std::string log = getPath("log");
    std::vector<llvm::StringRef> references(arguments.begin(), arguments.end());
    std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), log, log};
    if (llvm::sys::ExecuteAndWait(program, references, std::nullopt, redirects) != 0)
      return lacking("cannot " + purpose + ": " + firstLine(log));
    return llvm::Error::success();
  }

private:
  HostCompiler() = default;
  std::string program;
  llvm::SmallString<128> folder;
};
} // namespace

llvm::Error linkObjects(llvm::ArrayRef<std::string> objects, LinkForm form,
                        llvm::StringRef libraryFolder, llvm::StringRef output) {
  llvm::Expected<HostCompiler> compiler = HostCompiler::open("link");
  if (!compiler)
    return compiler.takeError();
  std::vector<std::string> arguments{"-o", output.str()};
  for (auto [i, object] : llvm::enumerate(objects)) {
    arguments.push_back(compiler->getPath(llvm::Twine(i) + ".o"));
    if (llvm::Error error = compiler->write(arguments.back(), object))
      return error;
  }
  if (form == LinkForm::object)
    arguments.insert(arguments.end(), {"-r", "-nostdlib"});
  else
    addRuntime(arguments, form, libraryFolder);
  if (llvm::sys::findProgramByName("ld.lld"))
    arguments.push_back("-fuse-ld=lld");

  return compiler->run(("link " + output).str(), std::move(arguments));
}

llvm::Expected<std::string> compileHostLibrary(llvm::StringRef source,
                                               llvm::ArrayRef<std::string> flags) {
  llvm::Expected<HostCompiler> compiler = HostCompiler::open("compile for the host");
  if (!compiler)
    return compiler.takeError();
  std::string text = compiler->getPath("source.cpp"), object = compiler->getPath("source.o"),
              library = compiler->getPath("library.so");
  if (llvm::Error error = compiler->write(text, source))
    return error;
  std::vector<std::string> arguments = flags.vec();
  arguments.insert(arguments.end(), {"-fPIC", "-c", text, "-o", object});
  if (llvm::Error error = compiler->run("compile for the host", std::move(arguments)))
    return error;
  // Without what flags such as sanitizers' would link: the loader of the library brings it.
  if (llvm::Error error = compiler->run("link for the host", {"-shared", object, "-o", library}))
    return error;
  auto bytes = llvm::MemoryBuffer::getFile(library);
  if (!bytes)
    return lacking("cannot read " + library + ": " + bytes.getError().message());
  return (*bytes)->getBuffer().str();
}

} // namespace tenon

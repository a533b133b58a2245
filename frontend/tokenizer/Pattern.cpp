#include "frontend/tokenizer/Pattern.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;

namespace tenon {

// The insides of classes.
constexpr char kSpace[] =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr char kWord[] = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9})";

namespace {
class Translator {
public:
  explicit Translator(StringRef pattern) : pattern(pattern) {}

  llvm::Expected<std::string> run() {
    while (at < pattern.size())
      if (llvm::Error error = classDepth ? insideClass() : outsideClass())
        return error;
    return anchored ? "(?m)" + out : out;
  }

private:
  llvm::Error refuse(const llvm::Twine &what) {
    return llvm::createStringError("the pattern '" + pattern + "' uses " + what +
                                   ", which is not supported");
  }

  void copy(size_t count) {
    out += pattern.substr(at, count);
    at += count;
  }

  llvm::Error outsideClass() {
    char c = pattern[at];
    if (c == '\\')
      return escape();
    if (c == '[')
      return openClass();
    anchored |= c == '^' || c == '$';
    copy(1);
    return llvm::Error::success();
  }

  llvm::Error openClass() {
    ++classDepth;
    copy(1);
    if (pattern.substr(at).starts_with("^"))
      copy(1);
    if (pattern.substr(at).starts_with("]")) // a ] that comes first is an ordinary character
      out += '\\', copy(1);
    return llvm::Error::success();
  }

  llvm::Error insideClass() {
    StringRef rest = pattern.substr(at);
    if (rest[0] == '\\')
      return escape();
    if (rest.starts_with("[:")) {
      size_t end = rest.find(":]");
      if (end != StringRef::npos) {
        copy(end + 2);
        return llvm::Error::success();
      }
    }
    if (rest.starts_with("&&"))
      return refuse("an intersection of character classes (&&)");
    if (rest.starts_with("[^"))
      return refuse("a complement inside a character class");
    if (rest[0] == '[' || rest[0] == ']') {
      // The brackets of an inner class go, its members stay.
      bool inner = rest[0] == '[' || classDepth > 1;
      classDepth += rest[0] == '[' ? 1 : -1;
      if (inner)
        ++at;
      else
        copy(1);
      return llvm::Error::success();
    }
    copy(1);
    return llvm::Error::success();
  }

  llvm::Error escape() {
    if (at + 1 == pattern.size())
      return refuse("a backslash at its end");
    char c = pattern[at + 1];
    switch (c) {
    case 's':
    case 'w':
      return characterClass(c == 's' ? kSpace : kWord, false);
    case 'S':
    case 'W':
      return characterClass(c == 'S' ? kSpace : kWord, true);
    case 'u': {
      StringRef digits = pattern.substr(at + 2, 4);
      if (digits.size() != 4 || !llvm::all_of(digits, llvm::isHexDigit))
        return refuse("\\u without four hexadecimal digits");
      out += ("\\x{" + digits + "}").str();
      at += 6;
      return llvm::Error::success();
    }
    case 'h':
    case 'H':
    case 'G':
    case 'K':
    case 'Q':
    case 'E':
      return refuse(llvm::Twine("\\") + llvm::Twine(c));
    default:
      copy(2);
      return llvm::Error::success();
    }
  }

  llvm::Error characterClass(StringRef members, bool complement) {
    if (complement && classDepth)
      return refuse(llvm::Twine(pattern.substr(at, 2)) + " inside a character class");
    at += 2;
    out += classDepth ? members.str() : ((complement ? "[^" : "[") + members + "]").str();
    return llvm::Error::success();
  }

  StringRef pattern;
  size_t at = 0;
  int classDepth = 0;
  bool anchored = false;
  std::string out;
};
} // namespace

llvm::Expected<std::string> translatePattern(StringRef pattern) {
  return Translator(pattern).run();
}

std::string literalPattern(StringRef text) {
  std::string out;
  for (char c : text) {
    if (llvm::isASCII(c) && llvm::isPrint(c) && !llvm::isAlnum(c))
      out += '\\';
    out += c;
  }
  return out;
}

} // namespace tenon

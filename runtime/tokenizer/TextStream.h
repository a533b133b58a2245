// Text as it is generated: tokens in, complete characters out. A token may end in the middle of a
// character.
#ifndef TENON_RUNTIME_TOKENIZER_TEXTSTREAM_H
#define TENON_RUNTIME_TOKENIZER_TEXTSTREAM_H

#include "runtime/tokenizer/Tokenizer.h"

namespace tenon::rt {

class TextStream {
public:
  explicit TextStream(const Tokenizer &tokenizer, bool skipSpecial = false)
      : tokenizer(tokenizer), skipSpecial(skipSpecial) {}

  /// The text that is complete with this token. All of it and finish() together are what decode()
  /// gives.
  std::string push(int32_t id);

  /// What an unfinished character at the end comes to.
  std::string finish();

private:
  const Tokenizer &tokenizer;
  bool skipSpecial;
  std::string held; // the first bytes of a character, at most 3
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_TEXTSTREAM_H

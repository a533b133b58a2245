// The character classes that tokenizers ask about.
#ifndef TENON_RUNTIME_TOKENIZER_UNICODE_H
#define TENON_RUNTIME_TOKENIZER_UNICODE_H

namespace tenon::rt {

bool isWhiteSpace(char32_t c); // Unicode's White_Space
bool isWord(char32_t c); // what \w matches: letters, marks, decimal digits, connectors, joiners

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_UNICODE_H

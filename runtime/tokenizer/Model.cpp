#include "runtime/tokenizer/Model.h"

#include "runtime/tokenizer/Tokenizer.h"

namespace tenon::rt {

std::unique_ptr<Model> makeModel(const BlobView &view) {
  switch (view.header->model) {
  case blob::Model::ByteLevelBpe:
    return makeByteLevelBpe(view);
  }
  throw TokenizerError("the tokenizer data asks for model kind " +
                       std::to_string(uint32_t(view.header->model)) +
                       ", which this runtime does not have");
}

} // namespace tenon::rt

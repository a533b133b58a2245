// What the compiler says about the model: the small `meta` section, a JSON object.
//
//   {"model", "architecture", "tenon_version", "target", "precision", "kv_dtype", "context",
//    "parameters", "config_digest", "isa": [..], "flags": {..}, "generation": {"eos": [ids], "stop": [strings],
//    "decoder_start": id},
//    "tokenizer": bool, "onednn_path", "weights_file"}
//
// A missing key takes its default, so that older files stay readable; a key of the wrong type is
// refused.
#ifndef TENON_RUNTIME_META_H
#define TENON_RUNTIME_META_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

struct Meta {
  std::string model, architecture, tenonVersion, target, precision, kvDtype, configDigest;
  int64_t context = 0, parameters = 0;
  std::vector<std::string> isa;
  std::vector<int32_t> eos;
  std::vector<std::string> stop;
  int32_t decoderStart = -1; // what an encoder-decoder's answers begin with; negative: unknown
  bool tokenizer = false;
  std::string onednnPath;  // where the compiler found oneDNN; may be empty
  std::string weightsFile; // the sidecar; empty when the weights are in the file itself
  std::string json;        // the section as written

  // `where` names the file in messages.
  static Meta parse(std::string_view json, const std::string &where);
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_META_H

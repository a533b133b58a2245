#include "runtime/Meta.h"

#include "runtime/Error.h"

#include <nlohmann/json.hpp>

namespace tenon::rt {

Meta Meta::parse(std::string_view text, const std::string &where) {
  Meta meta;
  meta.json = text;
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    refuse("{}: its meta section is not a JSON object; compile it again", where);

  auto read = [&](const nlohmann::json &object, const char *key, auto &value) {
    auto found = object.find(key);
    if (found == object.end() || found->is_null())
      return;
    try {
      found->get_to(value);
    } catch (const nlohmann::json::exception &) {
      refuse("{}: key '{}' of its meta section has the wrong type ({}); compile it again", where,
             key, found->type_name());
    }
  };
  read(json, "model", meta.model);
  read(json, "architecture", meta.architecture);
  read(json, "tenon_version", meta.tenonVersion);
  read(json, "target", meta.target);
  read(json, "precision", meta.precision);
  read(json, "kv_dtype", meta.kvDtype);
  read(json, "config_digest", meta.configDigest);
  read(json, "context", meta.context);
  read(json, "parameters", meta.parameters);
  read(json, "isa", meta.isa);
  read(json, "tokenizer", meta.tokenizer);
  read(json, "onednn_path", meta.onednnPath);
  read(json, "weights_file", meta.weightsFile);
  if (auto generation = json.find("generation");
      generation != json.end() && generation->is_object()) {
    read(*generation, "eos", meta.eos);
    read(*generation, "stop", meta.stop);
    read(*generation, "decoder_start", meta.decoderStart);
  }
  return meta;
}

} // namespace tenon::rt

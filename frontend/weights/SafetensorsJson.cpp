// Both parsers take events and refuse what the format does not have, the first time it occurs. So a
// hostile file costs no more memory than its own entries, however it nests.
#include "frontend/weights/SafetensorsJson.h"
#include "llvm/ADT/StringExtras.h"
#include <nlohmann/json.hpp>

using llvm::StringRef;
using llvm::Twine;

namespace tenon {

namespace {
using Sax = nlohmann::json_sax<nlohmann::json>;

// Refuses every value; subclasses accept what they know.
class Events : public Sax {
public:
  // True if the text is what the subclass accepts.
  bool walk(StringRef text) {
    try {
      return nlohmann::json::sax_parse(text.begin(), text.end(), static_cast<Sax *>(this));
    } catch (const std::exception &exception) {
      return refuse(exception.what());
    }
  }

  std::string message;
  std::optional<uint64_t> position; // in the text, if it is no JSON

protected:
  bool refuse(const Twine &text) {
    message = text.str();
    return false;
  }
  // A value that the subclass has no use for: refuses or passes over it.
  virtual bool unexpected(StringRef what) = 0;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_unsigned(uint64_t) override { return unexpected("a number"); }
  bool number_float(double, const std::string &) override {
    return unexpected("a number that is no 64-bit integer");
  }
  bool string(std::string &) override { return unexpected("a string"); }
  bool binary(nlohmann::json::binary_t &) override { return unexpected("bytes"); }
  bool start_array(size_t) override { return unexpected("an array"); }
  bool end_array() override { return true; }
  bool parse_error(size_t where, const std::string &,
                   const nlohmann::detail::exception &) override {
    position = where ? where - 1 : 0;
    return refuse("is not JSON");
  }
};

class HeaderEvents : public Events {
public:
  std::vector<SafetensorsEntry> entries;

private:
  static constexpr size_t maxDimensions = 8;
  enum Field { None, Dtype, Shape, Offsets };

  bool unexpected(StringRef what) override {
    if (!depth)
      return refuse("is " + what + "; accepted: an object");
    std::string of = field == Dtype     ? "'dtype' of "
                     : field == Shape   ? "'shape' of "
                     : field == Offsets ? "'data_offsets' of "
                                        : "";
    return refuse(of + quote(name) + " is or holds " + what +
                  (inMetadata       ? "; accepted: strings"
                   : field == Dtype ? "; accepted: a string such as \"F16\""
                   : field == None  ? "; accepted: an object"
                   : field == Shape ? "; accepted: sizes in an array"
                                    : "; accepted: two offsets in an array"));
  }

  bool start_object(size_t) override {
    if (depth == 2)
      return unexpected("an object");
    if (++depth == 2 && !inMetadata) {
      entries.push_back({name, "", {}, 0, 0});
      seen = {};
    }
    return true;
  }

  bool end_object() override {
    if (--depth == 0)
      return true;
    if (!inMetadata && !(seen[Dtype] && seen[Shape] && seen[Offsets]))
      return refuse(quote(name) + " lacks " +
                    (!seen[Dtype]   ? "'dtype'"
                     : !seen[Shape] ? "'shape'"
                                    : "'data_offsets'"));
    field = None;
    return true;
  }

  bool key(std::string &text) override {
    if (depth == 1) {
      name = std::move(text);
      inMetadata = name == "__metadata__";
      return true;
    }
    if (inMetadata)
      return true;
    field = text == "dtype" ? Dtype : text == "shape" ? Shape : Offsets;
    if (field == Offsets && text != "data_offsets")
      return refuse(quote(name) + " has a key " + quote(text) +
                    "; accepted: dtype, shape, data_offsets");
    if (seen[field])
      return refuse(quote(name) + " has " + quote(text) + " twice");
    seen[field] = true;
    numbers.clear();
    return true;
  }

  bool string(std::string &text) override {
    if (depth == 2 && inMetadata)
      return true;
    if (depth != 2 || field != Dtype || inArray)
      return unexpected("a string");
    entries.back().dtype = std::move(text);
    return true;
  }

  bool start_array(size_t) override {
    if (depth != 2 || inMetadata || inArray || field == Dtype)
      return unexpected("an array");
    inArray = true;
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (!inArray)
      return unexpected("a number");
    numbers.push_back(number);
    if (field == Offsets && numbers.size() > 2)
      return unexpected("more than two numbers");
    if (field == Shape && (numbers.size() > maxDimensions || number > INT64_MAX))
      return unexpected(number > INT64_MAX ? "a size from 2^63 on" : "more than 8 sizes");
    return true;
  }

  bool end_array() override {
    inArray = false;
    SafetensorsEntry &entry = entries.back();
    if (field == Shape) {
      entry.shape.assign(numbers.begin(), numbers.end());
      return true;
    }
    if (numbers.size() != 2)
      return unexpected("fewer than two numbers");
    entry.begin = numbers[0];
    entry.end = numbers[1];
    return true;
  }

  int depth = 0;
  std::string name; // the entry's
  bool inMetadata = false, inArray = false;
  Field field = None;
  std::array<bool, 4> seen = {};
  llvm::SmallVector<uint64_t, 8> numbers;
};

// Only "weight_map" matters; the rest ("metadata") is passed over.
class IndexEvents : public Events {
public:
  std::vector<ShardedTensor> tensors;
  bool found = false;

private:
  static constexpr size_t maxDepth = 64;

  bool unexpected(StringRef what) override {
    if (depth > 0 && !inMap())
      return true;
    return refuse(depth == 0 ? "is " + what + "; accepted: an object"
                             : "'weight_map' is or holds " + what +
                                   "; accepted: {\"TENSOR\": \"FILE\", ...}");
  }
  // At the map itself or inside.
  bool inMap() const { return topKey == "weight_map"; }

  bool open() {
    return ++depth <= maxDepth || refuse("nests more than " + Twine(maxDepth) + " deep");
  }
  bool start_object(size_t) override {
    if (inMap() && depth != 1)
      return unexpected("an object");
    return open();
  }
  bool end_object() override {
    --depth;
    return true;
  }
  bool start_array(size_t) override { return unexpected("an array") && open(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool key(std::string &text) override {
    if (depth == 1) {
      topKey = std::move(text);
      if (inMap() && found)
        return refuse("has 'weight_map' twice");
      found |= inMap();
    } else if (inMap()) {
      tensors.push_back({std::move(text), ""});
    }
    return true;
  }
  bool string(std::string &text) override {
    if (!inMap() || depth != 2)
      return unexpected("a string");
    // A name from outside must not lead out of the directory.
    if (text.empty() || text[0] == '.' || text.find_first_of(StringRef("/\\\0", 3)) != text.npos)
      return refuse("'weight_map' places " + quote(tensors.back().name) + " in " + quote(text) +
                    "; accepted: the name of a file beside the index");
    tensors.back().shard = std::move(text);
    return true;
  }

  size_t depth = 0;
  std::string topKey;
};
} // namespace

// Runs `events` over `size` bytes from `offset` of a file.
static llvm::Error walk(Events &events, const MappedFile &file, uint64_t offset, uint64_t size,
                        StringRef what) {
  StringRef text = llvm::toStringRef(file.getBytes().slice(offset, size));
  if (events.walk(text))
    return llvm::Error::success();
  return file.failAtByte(offset + events.position.value_or(0), what + ": " + events.message);
}

llvm::Expected<std::vector<SafetensorsEntry>>
parseSafetensorsHeader(const MappedFile &file, uint64_t offset, uint64_t size) {
  HeaderEvents events;
  if (llvm::Error error = walk(events, file, offset, size, "the header"))
    return error;
  return std::move(events.entries);
}

llvm::Expected<std::vector<ShardedTensor>> parseShardIndex(const MappedFile &file) {
  IndexEvents events;
  if (llvm::Error error = walk(events, file, 0, file.getBytes().size(), "the index"))
    return error;
  if (!events.found)
    return file.fail("the index lacks 'weight_map'; accepted: {\"weight_map\": {\"TENSOR\": "
                     "\"FILE\", ...}}");
  return std::move(events.tensors);
}

} // namespace tenon

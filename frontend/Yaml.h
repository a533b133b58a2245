// Reads a YAML (or JSON) file into a Value.
//
// Beyond syntax it refuses what makes YAML treacherous: duplicate keys, anchors and aliases, tags,
// several documents, nesting deeper than 64, text that is not UTF-8, and files over 4 MiB.
#ifndef TENON_FRONTEND_YAML_H
#define TENON_FRONTEND_YAML_H

#include "frontend/Value.h"

namespace tenon {

llvm::Expected<Value> readYamlFile(llvm::StringRef path);
// `name` is what messages call the text.
llvm::Expected<Value> readYaml(llvm::StringRef text, llvm::StringRef name);

} // namespace tenon

#endif // TENON_FRONTEND_YAML_H

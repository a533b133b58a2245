#!/bin/sh
# Each folder may include from few others, so that the order of processing is also the order of
# reading. This checks every #include and TableGen include of the tree against the table below.
#
#   scripts/check-layers.sh [ROOT]
#
# Prints one line for each violation and exits 1 if there was any.

set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

# A folder's rule is the one with the longest matching name. A folder may always include from itself.
# "only" reserves a library for the named folders; the other folders must not include it.
rules='
  folder ir
  folder frontend            ir
  folder frontend/tokenizer  ir frontend runtime/tokenizer
  folder passes              ir
  folder codegen             ir passes runtime/kernel_abi.h runtime/artefact.h runtime/tenon.h
  folder plugin              ir passes codegen frontend/Extensions.h
  folder runtime

  only yaml-cpp              frontend
  only mlir                  frontend ir passes codegen plugin tools bench examples
  only mlir-c                frontend ir passes codegen plugin tools bench examples
  only llvm                  frontend ir passes codegen plugin tools bench examples
  only llvm-c                frontend ir passes codegen plugin tools bench examples
  only clang                 codegen tools
'

find ir frontend passes codegen plugin runtime tools bench examples -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' \
  -o -name '*.inc' -o -name '*.td' \) 2>/dev/null | LC_ALL=C sort |
  RULES=$rules awk '
    BEGIN {
      n = split(ENVIRON["RULES"], line, "\n")
      for (i = 1; i <= n; ++i) {
        words = split(line[i], word, " ")
        if (words < 2) continue
        list = " "
        for (j = 3; j <= words; ++j) list = list word[j] " "
        if (word[1] == "folder") { rule[word[2]] = list; layer[word[2]] = 1 }
        if (word[1] == "only") only[word[2]] = list
      }
      layer["tools"] = layer["test"] = layer["bench"] = layer["examples"] = 1
    }

    # The longest folder of the table that holds the file; "" for tools, bench, examples.
    function ruleOf(file) {
      while (sub(/\/[^\/]*$/, "", file))
        if (file in rule) return file
      return ""
    }
    function within(path, folder) { return path == folder || index(path, folder "/") == 1 }

    function check(file, number, path,    top, parts, part, own, allowed, i, n) {
      n = split(path, part, "/")
      if (path ~ /(^|\/)\.\.\//) { report(file, number, path, "write the path from the root"); return }
      split(file, parts, "/")
      top = parts[1]
      if (part[1] in only && n > 1) {
        if (!index(only[part[1]], " " top " "))
          report(file, number, path, part[1] " is for:" only[part[1]])
        return
      }
      own = ruleOf(file)
      if (own == "" || n == 1 || !(part[1] in layer) || within(path, own)) return
      n = split(rule[own], allowed, " ")
      for (i = 1; i <= n; ++i) if (within(path, allowed[i])) return
      report(file, number, path, own " may include:" (n ? rule[own] : " nothing else"))
    }
    function report(file, number, path, why) {
      sub(/ $/, "", why)
      printf "%s:%d: includes %s (%s)\n", file, number, path, why
      bad = 1
    }

    {
      file = $0
      number = 0
      while ((getline text < file) > 0) {
        ++number
        if (text !~ /^[ \t]*#?[ \t]*include[ \t]*["<]/) continue
        sub(/^[^"<]*["<]/, "", text)
        sub(/[">].*$/, "", text)
        check(file, number, text)
      }
      close(file)
    }
    END { exit bad }'

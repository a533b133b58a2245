#!/bin/sh
# Follows a document literally, in the current folder: writes the files that it shows and runs its
# commands, one shell for all, until one fails.
#
#   <!-- file: NAME -->   before a block: its text becomes that file
#   ```sh                 commands; a line `$ COMMAND` is run, and the lines after it are what it
#                         must print, of which `...` stands for any lines
#
#   scripts/run-tutorial.sh DOCUMENT.md

set -eu
script=$(mktemp)
trap 'rm -f "$script"' EXIT
awk '
  # Ends the command that is open: its output is compared with what the document shows.
  function finish() {
    if (command == "") return
    if (expected == "") print command
    else {
      printf "cat > .expected <<\"EXPECTED\"\n%sEXPECTED\n", expected
      printf "{ %s; } > .printed 2>&1 || { cat .printed; exit 1; }\n", command
      print "compare .expected .printed"
    }
    command = expected = ""
  }
  BEGIN {
    print "set -e"
    print "compare() { # every run of lines between ... must occur, in order"
    print "  awk -v shown=\"$1\" -f .compare \"$2\" || { echo \"--- shown\"; cat \"$1\"; echo \"--- printed\"; cat \"$2\"; exit 1; }"
    print "}"
    print "cat > .compare <<\"AWK\""
    print "BEGIN { while ((getline line < shown) > 0) want[++n] = line; i = 1 }"
    print "{ if (want[i] == \"...\") { open = 1; ++i } if (i <= n && $0 == want[i]) { ++i; open = 0 } else if (!open) exit bad = 1 }"
    print "END { if (want[i] == \"...\") ++i; exit bad || i <= n }"
    print "AWK"
  }
  /^<!-- file: / { file = $3; next }
  /^```/ {
    if (inside) {
      if (file != "") print "TUTORIAL"
      finish(); inside = shell = 0; file = ""
    } else {
      inside = 1
      shell = $0 == "```sh"
      if (file != "") printf "mkdir -p \"$(dirname %s)\"; cat > %s <<\"TUTORIAL\"\n", file, file
    }
    next
  }
  !inside { next }
  file != "" { print; next }
  shell && /^\$ / { finish(); command = substr($0, 3); next }
  shell { expected = expected $0 "\n" }
' "$1" >"$script"
sh -v "$script"

"""Tests that tenon-check-update refuses: writes each into a folder, runs it, and looks that it is unchanged."""
import os
import subprocess
import sys

FUNCTION = "func.func @f() {\n  return\n}\n"
TESTS = {
    "no-run": FUNCTION,
    "messages": "// RUN: not tenon-opt %s 2>&1 | FileCheck %s\n" + FUNCTION,
    "two-forms": "// RUN: tenon-opt %s | FileCheck %s\n// RUN: tenon-opt %s 2>&1 | FileCheck %s\n" + FUNCTION,
    "two-texts": "// RUN: tenon-opt %s | FileCheck %s\n// RUN: tenon-opt %s --mlir-print-op-generic | FileCheck %s\n" + FUNCTION,
    "bad-pass": "// RUN: tenon-opt %s --no-such-pass | FileCheck %s\n" + FUNCTION,
    "bad-ir": "// RUN: tenon-opt %s | FileCheck %s\nnonsense\n",
    "unknown": "// RUN: tenon-opt %s --load-plugin=%plugin | FileCheck %s\n" + FUNCTION,
    "forbidden": "// RUN: tenon-opt %s | FileCheck %s --implicit-check-not=module\n" + FUNCTION,
    "silent": "// RUN: tenon-opt %s -o /dev/null | FileCheck %s\n" + FUNCTION,
    "bytes": b"// RUN: \xff\n",
    "absent": None,
}

os.chdir(sys.argv[1])
script = os.path.join(os.path.dirname(__file__), *[os.pardir] * 4, "scripts", "tenon-check-update")
for name, text in TESTS.items():
    text = text.encode() if isinstance(text, str) else text
    file = name + ".mlir"
    if text is not None:
        with open(file, "wb") as out:
            out.write(text)
    status = subprocess.run([sys.executable, script, file]).returncode
    if status != 1:
        sys.exit(f"{file}: exit {status}")
    if text is not None:
        with open(file, "rb") as now:
            if now.read() != text:
                sys.exit(f"{file}: has changed")

"""How many instructions a token takes, kernel by kernel: a figure that does not depend on what else the machine does.

    count.py [MODEL...] [--tenon build/bin/tenon] [--update]

Valgrind counts two runs of one thread that differ only in how many tokens they take; a kernel's share is the difference
of the two, for a token. What both do, from start to tokenizer, cancels out.

    decode      (16 tokens and 9 generated  -  16 tokens and 1 generated)  / 8
    prefill     (a prompt of 96 tokens      -  a prompt of 32 tokens)      / 64

`expected.json` holds what was counted last. Exits with 1 if a model has become more than 2 % dearer, or one of its
kernels has by more than that and by more than 0.5 % of the whole; --update writes the new counts there.

Valgrind knows no AVX-512, so the models are compiled for x86-64-v3: the same kernels, in AVX2.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
SMOLLM2 = HERE.parents[1] / "models/smollm2-135m-instruct.yaml"
MODELS = {  # options of `tenon compile`
    "smollm2": [],
    "two-layers": ["--set", "layers=2", "--set", "vocab=512", "--weights", "random:1", "--precision", "int4"],
}
PHASES = {  # (tokens of the prompt, generated tokens) of the longer run and of the shorter one, their difference
    "decode": ((16, 9), (16, 1), 8),
    "prefill": ((96, 1), (32, 1), 64),
}
TOLERANCE = 0.02
LEAST_SHARE = 0.005
REST = "runtime"


def run(*command):
    process = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {process.stdout.strip()[-400:]}")


def instructions(executable, prompt, generated, folder):
    """Of each kernel, in one run."""
    ids, counts = ",".join(str(100 + i) for i in range(prompt)), folder / "counts"
    callgrind = ["--tool=callgrind", "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={counts}"]
    generate = ["generate", "--ids", ids, "-n", generated, "--ignore-eos", "--threads", 1]
    run("valgrind", *callgrind, executable, *generate)
    return read_callgrind(counts.read_text())


def read_callgrind(text):
    """`fn=NAME` begins a function, "LINE COUNT" counts in it, except behind `calls=`: those are the callee's own."""
    counts, kernel, inherited = collections.Counter(), REST, False
    for line in text.splitlines():
        if line.startswith("fn="):
            symbol = re.fullmatch(r"fn=tenon_\w+\.(.+?)(\.decode)?", line)  # tenon_LEVEL.KERNEL[.PHASE]
            kernel = symbol[1] if symbol else REST
        elif line.startswith("calls="):
            inherited = True
        elif line[:1].isdigit():
            counts[kernel] += 0 if inherited else int(line.split()[1])
            inherited = False
    return counts


def count(name, tenon, phases):
    """{phase: {kernel: instructions for a token}}, the dearest first."""
    with tempfile.TemporaryDirectory() as folder:
        folder, found = pathlib.Path(folder), {}
        run(tenon, "compile", SMOLLM2, *MODELS[name], "--mcpu", "x86-64-v3", "-o", folder / name)
        for phase in phases:
            longer, shorter, tokens = PHASES[phase]
            counts = instructions(folder / name, *longer, folder)
            counts.subtract(instructions(folder / name, *shorter, folder))
            found[phase] = {kernel: round(n / tokens) for kernel, n in counts.most_common() if n >= tokens}
        return found


def compare(title, found, expected):
    """Prints a line for each kernel; returns the sentence to end with if the model has grown."""
    whole, total, grown = sum(expected.values()), sum(found.values()), []

    def line(kernel, now, before):
        change = f"{100 * (now / before - 1):+.2f} %" if before else "new"
        print(f"{title:<20} {kernel:<34} {before:>12,} {now:>12,} {change:>10}")

    for kernel in [*found, *(expected.keys() - found.keys())]:
        now, before = found.get(kernel, 0), expected.get(kernel, 0)
        line(kernel, now, before)
        if now > before * (1 + TOLERANCE) and now - before > whole * LEAST_SHARE:
            grown.append(kernel)
    line("in all", total, whole)
    if whole and total < whole * (1 - TOLERANCE):
        print(f"{title}: shrank; --update keeps it there")
    return f"{title}: grew: {', '.join(grown or ['in all'])}" if grown or total > whole * (1 + TOLERANCE) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="of " + ", ".join(MODELS))
    parser.add_argument("--tenon", default="build/bin/tenon", help="the compiler")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--expected", type=pathlib.Path, default=EXPECTED)
    parser.add_argument("--update", action="store_true", help="write what is counted to the expected counts")
    arguments = parser.parse_args()
    names, phases = arguments.models or list(MODELS), arguments.phases.split(",")
    if unknown := [name for name in names if name not in MODELS] + [phase for phase in phases if phase not in PHASES]:
        parser.error(f"{unknown[0]}: the models are {', '.join(MODELS)}, the phases {', '.join(PHASES)}")
    expected = json.loads(arguments.expected.read_text()) if arguments.expected.exists() else {}
    print(f"{'instructions a token':<20} {'kernel':<34} {'expected':>12} {'now':>12} {'change':>10}")
    grown = []
    for name in names:
        for phase, counts in count(name, arguments.tenon, phases).items():
            grown.append(compare(f"{name}, {phase}", counts, expected.get(name, {}).get(phase, {})))
            expected.setdefault(name, {})[phase] = counts
    if arguments.update:
        arguments.expected.write_text(json.dumps(expected, indent=1) + "\n")
    elif any(grown):
        sys.exit("\n".join(filter(None, grown)))


try:
    main()
except (OSError, RuntimeError, ValueError) as error:
    sys.exit(f"count.py: {error}")

"""large.py: what it takes to compile a model of seven billion parameters, and to run it.

    large.py [--compiler build/bin/tenon] [--dir build/growth] [--threads 2]

Llama 2 7B with random weights in int4, which nobody has to fetch. Takes 4 GB of disk in DIR while it runs, and a minute
or two where nothing else does; a step that takes more than a quarter of an hour is given up. The peaks must be under
6 GiB, or it exits with 1. The table is printed, and written to DIR/large.md for the page (bench/peers/report.py).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))

import turn  # noqa: E402
from markdown import table, threads_of  # noqa: E402

MODEL = HERE.parents[1] / "models/llama-2-7b.yaml"
LIMIT = 6 * 2**30
STEP_SECONDS = 900
PROMPT, GENERATED = 16, 16


def gib(size):
    return f"{size / 2**30:.2f}"


class Large:
    def __init__(self, arguments, executable):
        self.arguments, self.executable = arguments, executable
        self.rows, self.peaks, self.disturbed = [], [], []

    def step(self, name, *command, threads=None):
        print(name, file=sys.stderr, flush=True)
        process = turn.Process(command, threads, STEP_SECONDS)
        self.peaks.append(process.memory)
        if process.disturbed:
            self.disturbed.append(f"{name} ({100 * process.others:.0f} %)")
        return process

    def run(self):
        threads = self.arguments.threads
        options = ["--weights", "random:1", "--precision", "int4", "-o", self.executable]
        compiled = self.step("compile", self.arguments.compiler, "compile", MODEL, *options)
        self.rows.append(["compile", f"{compiled.seconds:.0f} s", gib(compiled.memory)])

        ids = ",".join(str(100 + i) for i in range(PROMPT))
        generate = [self.executable, "generate", "--ids", ids, "-n", GENERATED, "--ignore-eos", "--json"]
        generated = self.step("generate", *generate, threads=threads)
        if len(json.loads(generated.output)["ids"]) != GENERATED:
            raise RuntimeError(f"{GENERATED} tokens were to be generated: {generated.output}")
        name = f"start, {PROMPT} tokens read, {GENERATED} generated"
        self.rows.append([name, f"{generated.seconds:.1f} s", gib(generated.memory)])

        bench = [self.executable, "bench", "-p", PROMPT, "-n", 8, "-d", 0, "-b", 1, "-r", 3, "--json"]
        measured = self.step("bench", *bench, threads=threads)
        result = json.loads(measured.output)
        prefill, decode = (statistics.median(result[what][0]["tok_s"]) for what in ["prefill", "decode"])
        self.rows.append([f"prefill of {PROMPT} tokens", f"{prefill:.1f} tokens/s", gib(measured.memory)])
        weights, streaming = decode * result["weight_bytes"] / 1e9, result["stream_gb_s"]
        rate = f"{decode:.1f} tokens/s: {weights:.0f} GB/s of weights, where reading alone does {streaming:.0f}"
        self.rows.append(["decode", rate, gib(measured.memory)])

    def text(self):
        size = gib(self.executable.stat().st_size)
        head = [f"{threads_of(self.arguments.threads)}; the executable has {size} GiB", "", "peak memory, GiB"]
        text = table(head, self.rows)
        if self.disturbed:
            text += f"\n\nDisturbed by other processes, which had so much of the time: {', '.join(self.disturbed)}."
        return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--compiler", type=pathlib.Path, default="build/bin/tenon")
    add("--dir", type=pathlib.Path, default="build/growth")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        large = Large(arguments, pathlib.Path(folder) / "llama-2-7b")
        large.run()
        text = large.text()
    (arguments.dir / "large.md").write_text(text + "\n")
    print(text)
    if max(large.peaks) > LIMIT:
        sys.exit(f"large.py: {gib(max(large.peaks))} GiB at the peak, more than {gib(LIMIT)}")


try:
    main()
except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
    sys.exit(f"large.py: {error}")

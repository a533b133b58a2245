"""llama.cpp on a GGUF file, by its own programs llama-bench and llama-batched-bench.

    measure_llama.py MODEL --programs DIRECTORY --threads T [--samples N]
"""

import json
import pathlib
import subprocess

import common

parser = common.command_line()
parser.add_argument("--programs", type=pathlib.Path, required=True)
arguments = parser.parse_args()


def run(program, *options):
    """The JSON lines that a program prints."""
    command = [arguments.programs / program, "-m", arguments.model, "-t", str(arguments.threads), *options]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def bench(prompts, steps, depths):
    options = ["-o", "jsonl", "-r", str(arguments.samples)]
    options += ["-p", prompts, "-n", str(steps), "-d", depths]
    return [(line, rate) for line in run("llama-bench", *options) for rate in line["samples_ts"]]


for line, rate in bench(",".join(map(str, common.PREFILL)), 0, "0"):
    common.emit(f"prefill {line['n_prompt']}", rate)

for depth, batch, steps in common.DECODE:
    name = common.decode_name(depth, batch)
    if batch == 1:
        for _, rate in bench("0", steps, str(depth)):
            common.emit(name, rate)
        continue
    options = ["-npp", str(depth), "-ntg", str(steps), "-npl", str(batch), "-c", str((depth + steps) * batch)]
    for _ in range(arguments.samples):
        for line in run("llama-batched-bench", *options, "--output-format", "jsonl"):
            common.emit(name, line["speed_tg"])

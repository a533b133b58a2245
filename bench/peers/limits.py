"""What the machine can do at most, by bench/machine."""

import json
import pathlib
import subprocess

import turn

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "machine/machine.cpp"


def measure(directory, thread_counts):
    """{threads: {memory_gb_s, f32_gops, bf16_gops, int8_gops, disturbed}}; builds the program in `directory`."""
    program, limits = directory / "machine", {}
    subprocess.run(["c++", "-std=c++17", "-O3", "-march=native", "-pthread", SOURCE, "-o", program], check=True)
    for threads in thread_counts:
        turn.wait_until_quiet()
        process = turn.Process([program], threads)
        limits[threads] = dict(json.loads(process.output), disturbed=process.disturbed)
    return limits

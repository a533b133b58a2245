"""Measures a model compiled by Tenon side by side with other engines.

    compare.py --tenon OUT [--dir build/peers] [--rounds 5] [--threads 2,1] [--only openvino,llama-q4_1]
    compare.py --install        only installs the peers

In each round every peer has a turn, each followed by one of Tenon, so that whatever else the machine does meets both.
DIR/results.json has the raw samples, after each turn; report.py makes tables of them.

A sample during which other processes had more than 4 % of the time is disturbed. Its turn is taken again, --patience
times at most; whether it was disturbed stays beside the sample.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import engines
import install
import limits
import turn

INSTRUCTIONS = ["avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"]


def describe_machine(directory, thread_counts):
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    cpu = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {
        "processor": f"{cpu['model name']}, family {cpu['cpu family']} model {cpu['model']}",
        "instructions": [flag for flag in cpu["flags"].split() if flag in INSTRUCTIONS],
        "cpus": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{os.uname().sysname} {os.uname().release}",
        "compiler": engines.output("c++", "--version").splitlines()[0],
        "limits": limits.measure(directory, thread_counts),
    }


class Comparison:
    def __init__(self, arguments, path):
        self.arguments, self.path = arguments, path
        self.results = {"engines": {}, "failed": {}, "samples": []}

    def save(self):
        self.path.write_text(json.dumps(self.results, indent=1) + "\n")

    def fail(self, name, error):
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        self.results["failed"][name] = str(error)

    def take_turn(self, engine, number, threads):
        for attempt in range(self.arguments.patience + 1):
            if self.arguments.patience:
                turn.wait_until_quiet()
            samples = turn.take(engine, threads, self.arguments.samples)
            for sample in samples:
                sample["disturbed"] = sample["others"] > turn.DISTURBED
            self.results["samples"] += [
                {"round": number, "engine": engine.name, "threads": threads, **sample} for sample in samples
            ]
            self.save()
            if not any(sample["disturbed"] for sample in samples):
                return
            print(f"  {engine.name}: disturbed", flush=True)

    def run(self, tenon, peers, thread_counts):
        for engine in [tenon, *peers]:
            about = {"title": engine.title, "weights": engine.weights, "version": engine.version}
            self.results["engines"][engine.name] = about
        for number in range(self.arguments.rounds):
            for threads in thread_counts:
                for peer in peers:
                    print(f"round {number + 1}, {threads} threads, {peer.name}", flush=True)
                    if peer.name not in self.results["failed"]:
                        try:
                            self.take_turn(peer, number, threads)
                        except (RuntimeError, ValueError) as error:
                            self.fail(peer.name, error)
                    self.take_turn(tenon, number, threads)


def command_line():
    cache = os.environ.get("TENON_CACHE") or os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/tenon"
    cpus = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tenon", type=pathlib.Path, help="SmolLM2 compiled")
    add("--dir", type=pathlib.Path, default="build/peers", help="where the peers are installed")
    add("--gguf", type=pathlib.Path, default=f"{cache}/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    add("--only", default=",".join(engines.DEFAULT), help="of " + ", ".join(engines.PEERS))
    add("--threads", default="2,1")
    add("--rounds", type=int, default=5)
    add("--samples", type=int, default=1, help="of each measure in a turn")
    add("--patience", type=int, default=2, help="0 waits for nothing and repeats nothing")
    add("--jobs", type=int, default=cpus, help="to build llama.cpp with")
    add("--install", action="store_true", help="only install")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := [name for name in names if name not in engines.PEERS]:
        parser.error(f"--only {unknown[0]}: one of {', '.join(engines.PEERS)}")
    if not arguments.install and not (arguments.tenon and arguments.tenon.is_file()):
        parser.error("--tenon OUT: a model compiled by Tenon")
    if not arguments.gguf.is_file():
        parser.error(f"--gguf {arguments.gguf}: no such file (make deps fetches it)")
    return arguments, names, [int(n) for n in arguments.threads.split(",")]


def main():
    arguments, names, thread_counts = command_line()
    directory, gguf = arguments.dir.resolve(), arguments.gguf.resolve()
    installer = install.Installer(directory, gguf, arguments.jobs)
    comparison = Comparison(arguments, directory / "results.json")
    peers = []
    for name in names:
        try:
            installer.install(name)
            peers.append(engines.peer(name, directory, gguf))
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            comparison.fail(name, error)
    if arguments.install:
        sys.exit(bool(comparison.results["failed"]))
    comparison.results["machine"] = describe_machine(directory, thread_counts)
    comparison.run(engines.tenon(arguments.tenon.resolve()), peers, thread_counts)
    print(f"wrote {comparison.path}")


try:
    main()
except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
    sys.exit(f"compare.py: {error}")

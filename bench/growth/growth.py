"""How time and memory of a compiled model grow: with context, prompt, batch, threads and width.

    growth.py --tenon OUT [--compiler build/bin/tenon] [--dir build/growth] [--threads 2,1] [--rounds 2] [--minutes 20]
        [--only context,batch]

OUT is SmolLM2, compiled; models of other widths are compiled into DIR. A round takes each point of series.py once, five
minutes or so where nothing else runs. A point during which other processes had more than 4 % of the time is disturbed
and taken once more (--patience), as long as there is time: after --minutes no other one is begun.

DIR/results.json has the samples; the tables are printed, and written to DIR/*.md for the page (bench/peers/report.py).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))

import limits  # noqa: E402
import series  # noqa: E402
import tables  # noqa: E402
import turn  # noqa: E402

MODEL = HERE.parents[1] / "models/smollm2-135m-instruct.yaml"
POINT_SECONDS = 300  # no point takes a tenth of it


def about(executable):
    info = json.loads(subprocess.run([executable, "info", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    return {name: info[name] for name in ["parameters", "weight_bytes", "kv_bytes_per_token", "context", "variant"]}


def take(point, executable):
    """One sample: the median of a process's repeats."""
    process = turn.Process([executable, "bench", *point.options, "--json"], point.threads, POINT_SECONDS)
    result = json.loads(process.output)
    measured = (result["decode"] or result["prefill"])[0]
    return {
        "series": point.series,
        "at": point.at,
        "threads": point.threads,
        "tok_s": statistics.median(measured["tok_s"]),
        "memory": result["peak_rss_bytes"],
        "kernels": measured.get("ops"),
        "others": process.others,
        "disturbed": process.disturbed,
    }


class Growth:
    def __init__(self, arguments):
        self.arguments = arguments
        self.deadline = time.monotonic() + 60 * arguments.minutes
        self.executables = {"smollm2": arguments.tenon.resolve()}
        self.results = {"models": {}, "limits": {}, "samples": [], "cut_short": False}

    def compile_widths(self):
        for width in series.WIDTHS if "width" in self.arguments.only else []:
            name = series.width_name(width)
            self.executables[name] = self.arguments.dir.resolve() / name
            command = [self.arguments.compiler, "compile", MODEL, *series.width_options(width)]
            subprocess.run([*map(str, command), "-o", self.executables[name]], check=True, stderr=subprocess.PIPE)
        self.results["models"] = {name: about(path) for name, path in self.executables.items()}

    def measure(self, point):
        for _ in range(self.arguments.patience + 1):
            if time.monotonic() > self.deadline:
                self.results["cut_short"] = True
                return
            if self.arguments.patience:
                turn.wait_until_quiet()
            sample = take(point, self.executables[point.model])
            self.results["samples"].append(sample)
            (self.arguments.dir / "results.json").write_text(json.dumps(self.results, indent=1) + "\n")
            if not sample["disturbed"]:
                return

    def run(self):
        threads = self.arguments.threads
        self.compile_widths()
        if "kernels" in self.arguments.only:
            self.results["limits"] = limits.measure(self.arguments.dir.resolve(), threads[:1])[threads[0]]
        for number in range(self.arguments.rounds):
            for count in threads:
                print(f"round {number + 1}, {count} threads", file=sys.stderr, flush=True)
                for point in series.points(count, threads[0]):
                    if point.series.split()[0] in self.arguments.only:
                        self.measure(point)


def main():
    cpus = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tenon", type=pathlib.Path, required=True, help="SmolLM2 compiled")
    add("--compiler", type=pathlib.Path, default="build/bin/tenon")
    add("--dir", type=pathlib.Path, default="build/growth")
    add("--threads", default=f"{cpus},1" if cpus > 1 else "1", help="the first is the one of batches and widths")
    add("--only", default=",".join(series.ALL))
    add("--rounds", type=int, default=2)
    add("--patience", type=int, default=1, help="0 waits for nothing and repeats nothing")
    add("--minutes", type=float, default=20)
    arguments = parser.parse_args()
    arguments.threads = [int(n) for n in arguments.threads.split(",")]
    arguments.only = arguments.only.split(",")
    if unknown := [name for name in arguments.only if name not in series.ALL]:
        parser.error(f"--only {unknown[0]}: some of {', '.join(series.ALL)}")
    arguments.dir.mkdir(parents=True, exist_ok=True)
    growth = Growth(arguments)
    growth.run()
    for name, text in tables.parts(growth.results).items():
        (arguments.dir / f"{name}.md").write_text(text + "\n")
        print(text, end="\n\n")


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"growth.py: {error}: {(error.stderr or b'').decode().strip()[-300:]}")
except (OSError, RuntimeError, ValueError) as error:
    sys.exit(f"growth.py: {error}")

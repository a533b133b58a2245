"""report.py RESULTS [TEMPLATE]: what compare.py measured, in Markdown.

In a template `{{name}}` stands for a part: machine, limits, engines, tables or notes. Without one the parts follow each other.
"""

import json
import pathlib
import re
import statistics
import sys

import common

# SmolLM2: a token of a prompt multiplies with each weight of the layers, a decoded one reads all packed weights.
PROMPT_OPERATIONS = 2 * 106.2e6
DECODE_BYTES = 98.3e6


def in_mib(value):
    return f"{value / 2**20:.0f}"


# measure: (what a person calls it, how a value is written, whether more is better)
ROWS = {f"prefill {n}": (f"prefill of {n} tokens, tokens/s", "{:.0f}".format, True) for n in common.PREFILL}
for depth, batch, _ in common.DECODE:
    of = f" of {batch} sequences" if batch > 1 else ""
    label = f"decode{of} behind {depth} tokens, tokens/s"
    ROWS[common.decode_name(depth, batch)] = (label, "{:.0f}".format, True)
ROWS["first token"] = ("process start to first token, ms", lambda value: f"{value * 1000:.0f}", False)
ROWS["first token memory"] = ("peak memory of that, MiB", in_mib, False)
ROWS["peak memory"] = ("peak memory of the other rows, MiB", in_mib, False)


def table(head, rows, numbers="---:"):
    lines = [head, ["---", *[numbers] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def threads_of(count):
    return f"{count} thread" + ("s" if int(count) > 1 else "")


class Report:
    def __init__(self, results):
        self.results = results
        self.values = {}  # (engine, threads, measure): [undisturbed values], [disturbed values]
        for s in results["samples"]:
            key = s["engine"], s["threads"], s["measure"]
            self.values.setdefault(key, ([], []))[s["disturbed"]].append(s["value"])
        self.engines = [e for e in results["engines"] if any(key[0] == e for key in self.values)]

    def title(self, engine):
        about = self.results["engines"][engine]
        return f"{about['title']} {about['weights']}"

    def median(self, *key):
        """Of what nobody disturbed, or of all if there is nothing else."""
        undisturbed, disturbed = self.values.get(key, ([], []))
        return statistics.median(undisturbed or disturbed) if undisturbed or disturbed else None

    def row(self, threads, measure):
        label, write, more_is_better = ROWS[measure]
        medians = {engine: self.median(engine, threads, measure) for engine in self.engines}
        cells = ["–" if value is None else write(value) for value in medians.values()]
        tenon, *peers = medians.values()
        peers = [value for value in peers if value is not None]
        if tenon is None or not peers:
            return [label, *cells, "–"]
        ratio = tenon / max(peers) if more_is_better else min(peers) / tenon
        return [label, *cells, f"**{ratio:.2f}**"]

    def tables(self):
        parts = []
        for threads in map(int, self.results["machine"]["limits"]):
            head = [threads_of(threads), *map(self.title, self.engines), "Tenon / fastest peer"]
            parts.append(table(head, [self.row(threads, measure) for measure in ROWS]))
        return "\n\n".join(parts)

    def limits(self):
        head = ["", "memory, GB/s", "int8, Gop/s", "bf16, Gop/s", "f32, Gop/s", "prefill, tokens/s", "decode, tokens/s"]
        rows = []
        for threads, limit in self.results["machine"]["limits"].items():
            memory, int8 = limit["memory_gb_s"], limit["int8_gops"]
            row = [memory, int8, limit["bf16_gops"], limit["f32_gops"]]
            row += [int8 and int8 * 1e9 / PROMPT_OPERATIONS, memory * 1e9 / DECODE_BYTES]
            rows.append([threads_of(threads), *("–" if value is None else f"{value:.0f}" for value in row)])
        return table(head, rows)

    def engines_table(self):
        about = [self.results["engines"][engine] for engine in self.engines]
        return table(["engine", "version", "weights"], [[a["title"], a["version"], a["weights"]] for a in about], "---")

    def machine(self):
        machine = self.results["machine"]
        about = [machine["processor"], f"{machine['cpus']} CPUs", " ".join(machine["instructions"])]
        about += [f"{machine['memory'] / 2**30:.0f} GiB", machine["kernel"], machine["compiler"]]
        return "; ".join(about)

    def notes(self):
        samples = self.results["samples"]
        disturbed = sum(sample["disturbed"] for sample in samples)
        only = sum(not undisturbed for undisturbed, _ in self.values.values())
        rounds = len({sample["round"] for sample in samples})
        text = f"Rounds: {rounds}; samples: {len(samples)}, of which other processes disturbed {disturbed}"
        text += f"; {only} of {len(self.values)} medians are of disturbed samples." if only else ", which are left out."
        if any(limit["disturbed"] for limit in self.results["machine"]["limits"].values()):
            text += " The machine's own limits were disturbed, too."
        return " ".join([text, *(f"{engine} failed and is missing." for engine in self.results["failed"])])

    def part(self, name):
        return {
            "machine": self.machine,
            "limits": self.limits,
            "engines": self.engines_table,
            "tables": self.tables,
            "notes": self.notes,
        }[name]()


def main():
    report = Report(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    template = "{{machine}}\n\n{{limits}}\n\n{{engines}}\n\n{{tables}}\n\n{{notes}}\n"
    if len(sys.argv) > 2:
        template = pathlib.Path(sys.argv[2]).read_text()
    print(re.sub(r"\{\{(\w+)\}\}", lambda match: report.part(match[1]), template), end="")


main()

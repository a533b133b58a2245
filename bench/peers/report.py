"""report.py RESULTS [TEMPLATE [FOLDER]]: what compare.py measured, in Markdown.

In a template `{{name}}` stands for a part: machine, limits, engines, tables, notes or instructions. `{{folder/name}}` is
what another benchmark wrote to FOLDER/folder/name.md (default: build). Without a template the parts follow each other.
"""

import json
import pathlib
import re
import statistics
import sys

import common
from markdown import table, threads_of

# SmolLM2: a token of a prompt multiplies with each weight of the layers, a decoded one reads all packed weights.
PROMPT_OPERATIONS = 2 * 106.2e6
DECODE_BYTES = 98.3e6
INSTRUCTIONS = pathlib.Path(__file__).resolve().parents[1] / "instructions/expected.json"


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

    def instructions(self):
        """The committed counts of SmolLM2, the kernels of the two phases by what a token takes of both."""
        phases = json.loads(INSTRUCTIONS.read_text())["smollm2"]
        counts = {}  # what a kernel is called: [in decode, in prefill]
        for column, phase in enumerate(["decode", "prefill"]):
            for symbol, count in phases[phase].items():
                name = symbol.partition(".")[0].rstrip("_0123456789")
                counts.setdefault(name, [0, 0])[column] += count
        rows = []
        for name, both in counts.items():
            if max(both) > 5000:
                rows.append([f"`{name}`", *(f"{count / 1e6:.2f}" if count else "–" for count in both)])
        whole = [f"**{sum(phases[phase].values()) / 1e6:.2f}**" for phase in ["decode", "prefill"]]
        head = ["millions of instructions a token", "decode behind 16 tokens", "prefill of 96 tokens"]
        return table(head, [*rows, ["**in all**", *whole]])

    def part(self, name):
        return {
            "machine": self.machine,
            "limits": self.limits,
            "engines": self.engines_table,
            "tables": self.tables,
            "notes": self.notes,
            "instructions": self.instructions,
        }[name]()


def written(folder, name):
    """A part that another benchmark wrote."""
    path = folder / f"{name}.md"
    return path.read_text().rstrip("\n") if path.is_file() else "*Not measured.*"


def main():
    report = Report(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    template = "{{machine}}\n\n{{limits}}\n\n{{engines}}\n\n{{tables}}\n\n{{notes}}\n"
    if len(sys.argv) > 2:
        template = pathlib.Path(sys.argv[2]).read_text()
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "build")

    def part(match):
        return written(folder, match[1]) if "/" in match[1] else report.part(match[1])

    print(re.sub(r"\{\{([\w/]+)\}\}", part, template), end="")


main()

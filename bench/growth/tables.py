"""tables.py RESULTS: what growth.py measured, as tables in Markdown, each with a line that says where its knee is."""

import collections
import json
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

import series  # noqa: E402
from markdown import table, threads_of  # noqa: E402

MIB = 2**20
NONE = "–"


def fit(points):
    """The line through points (x, y) of least squares, and by how much of it the farthest point is off."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x in xs)
    start = mean_y - slope * mean_x
    return start, slope, max(abs(y / (start + slope * x) - 1) for x, y in points)


def shown(value, digits=0):
    return NONE if value is None else f"{value:.{digits}f}"


class Tables:
    def __init__(self, results):
        self.results = results
        self.model = results["models"]["smollm2"]
        self.samples = collections.defaultdict(list)
        for sample in results["samples"]:
            self.samples[sample["series"], sample["at"], sample["threads"]].append(sample)
        self.threads = list(dict.fromkeys(sample["threads"] for sample in results["samples"]))

    def median(self, name, at, threads, what="tok_s"):
        """Of what nobody disturbed, or of all if there is nothing else."""
        samples = self.samples.get((name, at, threads), [])
        chosen = [s for s in samples if not s["disturbed"]] or samples
        return statistics.median(s[what] for s in chosen) if chosen else None

    def rates(self, name, threads):
        """{what grows: tokens/s}, as far as it was measured."""
        measured = sorted(at for series_, at, count in self.samples if (series_, count) == (name, threads))
        return {at: self.median(name, at, threads) for at in measured}

    def context(self):
        """A step's time is that of the weights and that of the cache, which grows with the context."""
        position, rows, lines = self.model["kv_bytes_per_token"], [], []
        rates = {threads: self.rates("context", threads) for threads in self.threads}
        for at in series.CONTEXTS:
            context = at + series.CONTEXT_STEPS // 2
            memory = self.median("context", at, self.threads[0], "memory")
            times = [rates[threads].get(at) for threads in self.threads]
            row = [at, f"{context * position / MIB:.1f}", *(shown(rate and 1000 / rate, 2) for rate in times)]
            rows.append([*row, shown(memory and memory / MIB)])
        for threads, points in rates.items():
            if len(points) < 3:
                continue
            line = [((at + series.CONTEXT_STEPS / 2) * position, 1 / rate) for at, rate in points.items()]
            start, slope, off = fit(line)
            lines.append(
                f"with {threads_of(threads)} {start * 1e3:.2f} ms and {slope * position * 1024 * 1e3:.2f} ms more for every "
                f"1024 tokens ({1 / slope / 1e9:.0f} GB/s of cache), from which no point is more than {100 * off:.1f} % away"
            )
        times = [f"{threads_of(n)}, ms a token" for n in self.threads]
        head = ["tokens before", "cache, MiB", *times, "peak memory, MiB"]
        return table(head, rows) + "\n\nThe straight line that fits best: " + "; ".join(lines) + "."

    def prompt(self):
        rates = {threads: self.rates("prompt", threads) for threads in self.threads}
        rows = []
        for at in series.PROMPTS:
            values = [rates[threads].get(at) for threads in self.threads]
            rows.append([at, *map(shown, values), *self.speedup(values)])
        lines = []
        for threads, points in rates.items():
            if points:
                best = max(points, key=points.get)
                enough = [at for at, rate in points.items() if rate >= 0.9 * points[best]]
                last = 100 * points[max(points)] / points[best]
                lines.append(
                    f"with {threads_of(threads)} the best rate is {points[best]:.0f} tokens/s at {best}; from {enough[0]} to "
                    f"{enough[-1]} it is at least 90 % of that, at {max(points)} still {last:.0f} %"
                )
        head = ["tokens of a prompt", *(f"{threads_of(n)}, tokens/s" for n in self.threads), *self.speedup_head()]
        return table(head, rows) + "\n\nKnee: " + "; ".join(lines) + "."

    def batch(self):
        threads = self.threads[0]
        alone, even, spread = (self.rates(f"batch {depth}", threads) for depth in series.BATCH_DEPTHS)
        rows = []
        for n in series.BATCHES:
            gain = alone.get(n) and alone.get(1) and alone[n] / alone[1]
            ratio = spread.get(n) and even.get(n) and spread[n] / even[n]
            row = [n, shown(alone.get(n)), shown(gain, 1)]
            rows.append([*row, shown(even.get(n)), shown(spread.get(n)), shown(ratio, 2)])
        head = ["sequences", "behind 16, tokens/s", "of one alone", "behind 520", "behind 16 to 1024", "spread / even"]
        lines = []
        for name, points in [("16", alone), ("16 to 1024", spread)]:
            gains = {n: points[n] / points[n // 2] for n in points if n // 2 in points}
            flat = next((n for n in sorted(gains) if gains[n] < 1.25), None)
            lines.append(f"{flat // 2} behind {name} tokens" if flat else f"none yet behind {name} tokens")
        knee = f"Knee with {threads_of(threads)}, from which on twice as many sequences bring less than a quarter more"
        return table(head, rows) + f"\n\n{knee}: " + "; ".join(lines) + "."

    def scaling(self):
        """The same samples, by threads."""
        rows = []
        for label, name, at in [
            ("prefill of 16 tokens", "prompt", 16),
            ("prefill of 512 tokens", "prompt", 512),
            ("prefill of 4096 tokens", "prompt", 4096),
            ("decode at the beginning", "context", 0),
            ("decode behind 4096 tokens", "context", 4096),
            ("decode of 16 sequences behind 16 tokens", "batch 16", 16),
        ]:
            values = [self.median(name, at, threads) for threads in self.threads]
            rows.append([label, *map(shown, values), *self.speedup(values)])
        return table(["tokens/s", *map(threads_of, self.threads), *self.speedup_head()], rows)

    def speedup_head(self):
        return [f"{self.threads[0]} / {n}" for n in self.threads[1:]]

    def speedup(self, values):
        first, *others = values
        return [shown(first and other and first / other, 2) for other in others]

    def width(self):
        threads, rows, reading, working = self.threads[0], [], {}, {}
        for width in series.WIDTHS:
            model = self.results["models"][series.width_name(width)]
            decode, prefill = (self.median(f"width {what}", width, threads) for what in ["decode", "prefill"])
            layers = model["parameters"] - series.WIDTH_VOCAB * width  # a prompt's tokens do not multiply with the head
            reading[width] = decode and decode * model["weight_bytes"] / 1e9
            working[width] = prefill and prefill * 2 * layers / 1e9
            row = [width, f"{model['weight_bytes'] / MIB:.1f}", shown(decode), shown(reading[width])]
            rows.append([*row, shown(prefill), shown(working[width])])
        head = ["width", "weights, MiB", "decode, tokens/s", "weights, GB/s"]
        head += [f"prefill of {series.WIDTH_PROMPT}, tokens/s", "Gop/s"]
        lines = []
        for name, rates, unit in [("decode", reading, "GB/s"), ("prefill", working, "Gop/s")]:
            rates = {width: rate for width, rate in rates.items() if rate}
            if rates:
                best = max(rates, key=rates.get)
                near = min(width for width, rate in rates.items() if rate >= 0.9 * rates[best])
                lines.append(f"from {near} on {name} has 90 % of its best rate, {rates[best]:.0f} {unit} at {best}")
                if best != max(rates):
                    lines[-1] += f", and still {rates[max(rates)]:.0f} at {max(rates)}"
        return table(head, rows) + f"\n\nKnee with {threads_of(threads)}: " + "; ".join(lines) + "."

    def kernels(self):
        """Of the sample in which a step took the least time."""
        threads, limits, texts = self.threads[0], self.results["limits"], []
        titles = [("prefill", 512, "Prefill of 512 tokens"), ("decode", 4096, "Decode behind 4096 tokens")]
        for name, at, title in titles:
            samples = self.samples.get((f"kernels {name}", at, threads), [])
            if not samples:
                continue
            kernels = min((s["kernels"] for s in samples), key=lambda kernels: sum(kernel["ms"] for kernel in kernels))
            total, rows = sum(kernel["ms"] for kernel in kernels), []
            for kernel in kernels:
                if kernel["ms"] < 0.005 * total:
                    continue
                reads, works = kernel["bytes"] / kernel["ms"] / 1e6, kernel["flops"] / kernel["ms"] / 1e6
                peak = limits["bf16_gops" if "attention" in kernel["kernel"] else "int8_gops"] or limits["f32_gops"]
                label = "waiting for others" if kernel["kernel"] == "wait" else f"`{kernel['kernel']}`"
                row = [label, kernel["calls"] or NONE, f"{kernel['ms']:.3f}", f"{100 * kernel['ms'] / total:.1f} %"]
                for rate, limit in [(reads, limits["memory_gb_s"]), (works, peak)]:
                    row += [f"{rate:.0f}", f"{100 * rate / limit:.0f} %"] if rate else [NONE, NONE]
                rows.append(row)
            head = [f"{title}, {threads_of(threads)}", "calls", "ms", "", "GB/s", "of memory", "Gop/s", "of the peak"]
            texts.append(table(head, rows))
        return "\n\n".join(texts)

    def notes(self):
        samples = self.results["samples"]
        disturbed = sum(sample["disturbed"] for sample in samples)
        only = sum(all(sample["disturbed"] for sample in point) for point in self.samples.values())
        text = f"Medians; {len(self.samples)} points, {len(samples)} processes. Other processes disturbed {disturbed}"
        text += f"; {only} points have no other." if only else ", which are left out."
        if disturbed:
            worst = statistics.median(sample["others"] for sample in samples if sample["disturbed"])
            text += f" They took {100 * worst:.0f} % of the time of a disturbed one (median)."
        text += " The machine's own limits were disturbed, too." if self.results["limits"].get("disturbed") else ""
        return text + (" Time was up before all points had been measured." if self.results["cut_short"] else "")


def parts(results):
    found = Tables(results)
    measured = {name.split()[0] for name, _, _ in found.samples}
    names = [name for name in series.ALL if name in measured]
    if {"context", "prompt"} <= measured:
        names.append("scaling")
    return {name: getattr(found, name)() for name in [*names, "notes"]}


if __name__ == "__main__":
    print("\n\n".join(parts(json.loads(pathlib.Path(sys.argv[1]).read_text())).values()))

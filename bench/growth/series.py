"""What is measured as it grows: each series is a list of points, a point a process `OUT bench` that prints tokens/s.

    context    decode of one sequence behind ever more tokens
    prompt     prefill of ever longer prompts
    batch      decode of ever more sequences: behind 16 tokens, behind 520 each, and behind 16 to 1024, 520 on average
    width      decode and prefill of models of 4 layers of random weights, ever wider
    kernels    where the time of one prompt goes, and of one step of decode: what does not grow, to compare with
"""

import dataclasses

ALL = ["context", "prompt", "batch", "width", "kernels"]
CONTEXTS = [0, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8128]
CONTEXT_STEPS = 64  # the last context and they fill the 8192 tokens that SmolLM2 holds
PROMPTS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
BATCHES = [1, 2, 4, 8, 16, 32, 64]
BATCH_DEPTHS = ["16", "520", "16:1024"]
BATCH_STEPS = 24
WIDTHS = [256, 512, 768, 1024, 1536, 2048]
WIDTH_LAYERS, WIDTH_VOCAB = 4, 512
WIDTH_PROMPT, WIDTH_STEPS = 128, 64


@dataclasses.dataclass
class Point:
    series: str
    at: int  # what grows
    threads: int
    model: str
    options: list

    @property
    def key(self):
        return self.series, self.at, self.threads


def decode(depth, batch, steps):
    return ["-p", "0", "-d", depth, "-b", batch, "-n", steps, "-r", "3"]


def prefill(tokens):
    return ["-p", tokens, "-n", "0", "-r", max(3, 1024 // tokens)]


def width_name(width):
    return f"width-{width}"


def width_options(width):
    """Of `tenon compile`: heads of 64, four of them for one of the cache, and an MLP four times as wide."""
    sizes = {"hidden": width, "heads": width // 64, "kv_heads": width // 256, "ffn": 4 * width}
    sizes |= {"layers": WIDTH_LAYERS, "vocab": WIDTH_VOCAB}
    sets = [option for name, size in sizes.items() for option in ("--set", f"{name}={size}")]
    return [*sets, "--weights", "random:1", "--precision", "int4"]


def points(threads, all_threads, model="smollm2"):
    found = [Point("context", n, threads, model, decode(n, 1, CONTEXT_STEPS)) for n in CONTEXTS]
    found += [Point("prompt", n, threads, model, prefill(n)) for n in PROMPTS]
    if threads == all_threads:
        for n in BATCHES:
            found += [Point(f"batch {d}", n, threads, model, decode(d, n, BATCH_STEPS)) for d in BATCH_DEPTHS]
    else:
        found.append(Point("batch 16", 16, threads, model, decode("16", 16, BATCH_STEPS)))
    for n in WIDTHS if threads == all_threads else []:
        found.append(Point("width decode", n, threads, width_name(n), decode(16, 1, WIDTH_STEPS)))
        found.append(Point("width prefill", n, threads, width_name(n), prefill(WIDTH_PROMPT)))
    if threads == all_threads:
        found.append(Point("kernels prefill", 512, threads, model, [*prefill(512), "--ops"]))
        found.append(Point("kernels decode", 4096, threads, model, [*decode(4096, 1, CONTEXT_STEPS), "--ops"]))
    return found

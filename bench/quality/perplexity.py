"""What activations in 8 bits cost: the perplexity of SmolLM2 as it is stored, against the same weights in f32.

    perplexity.py [--compiler build/bin/tenon] [--dir build/quality] [--threads T]

The text is that of the tests, in one context of 1548 tokens and in chunks of 512; as a prompt (prefill) and token by
token (decode). Beside them stands what another implementation, in f32, makes of it (test/oracle). Takes two minutes
where nothing else runs; a run that takes ten is given up. Exits with 1 if a difference is more than 0.5 %. The table is
printed, and written to DIR/perplexity.md for the page.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "peers"))

from markdown import table  # noqa: E402

ROOT = HERE.parents[1]
MODEL = ROOT / "models/smollm2-135m-instruct.yaml"
ORACLE = ROOT / "test/oracle/smollm2"
PROMISE = 0.005
SECONDS = 600


def output(*command):
    process = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=SECONDS)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {process.stderr.strip()[-300:]}")
    return process.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", type=pathlib.Path, default="build/bin/tenon")
    parser.add_argument("--dir", type=pathlib.Path, default="build/quality")
    parser.add_argument("--threads", type=int, help="1 is best where other processes run")
    arguments = parser.parse_args()
    threads = ["--threads", arguments.threads] if arguments.threads else []
    golden = json.loads((ORACLE / "perplexity.json").read_text())
    rows, worst = [], 0
    with tempfile.TemporaryDirectory() as folder:
        executables = {precision: pathlib.Path(folder) / precision for precision in ["f32", "stored"]}
        for precision, executable in executables.items():
            output(arguments.compiler, "compile", MODEL, "--precision", precision, "-o", executable)

        def perplexity(precision, *options):
            text = ORACLE / "perplexity_text.txt"
            return json.loads(output(executables[precision], "perplexity", text, *options, *threads, "--json"))["ppl"]

        for context, chunk, expected in [("1548", [], golden["ppl"]), ("512", ["--chunk", 512], golden["chunk_ppl"])]:
            for phase, cached in [("prefill", []), ("decode", ["--cached"])]:
                exact, found = perplexity("f32", *chunk, *cached), perplexity("stored", *chunk, *cached)
                difference = found / exact - 1
                worst = max(worst, abs(difference))
                row = [f"{phase}, contexts of {context} tokens", f"{expected:.4f}", f"{exact:.4f}", f"{found:.4f}"]
                rows.append([*row, f"{100 * difference:+.2f} %"])
    text = table(["perplexity", "transformers, f32", "Tenon, f32", "Tenon, as stored", "difference of the two"], rows)
    arguments.dir.mkdir(parents=True, exist_ok=True)
    (arguments.dir / "perplexity.md").write_text(text + "\n")
    print(text)
    if worst > PROMISE:
        sys.exit(f"perplexity.py: {100 * worst:.2f} % apart, more than {100 * PROMISE} %")


try:
    main()
except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
    sys.exit(f"perplexity.py: {error}")

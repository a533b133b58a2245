"""near.py FILE OTHER...: exits 1 unless all have the tokens of FILE, and its logprobs to 0.01."""

import json
import sys

want, *others = [json.load(open(name)) for name in sys.argv[1:]]
for name, got in zip(sys.argv[2:], others):
    pairs = zip(want["logprobs"], got["logprobs"])
    near = all(b is not None and abs(a - b) < 0.01 for a, b in pairs)
    if got["ids"] != want["ids"] or len(got["logprobs"]) != len(want["logprobs"]) or not near:
        sys.exit(f"{name}: {got['ids']} {got['logprobs']}, not {want['ids']} {want['logprobs']}")

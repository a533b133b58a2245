"""What the measuring programs share: what is measured, their command line, and the line that a sample is.

    PROGRAM MODEL --threads T [--samples N]     a JSON line for each sample, in tokens/s
    PROGRAM MODEL --threads T --first           instead the text of the token that follows `TEXT`

A measure is named after what goes in: `prefill 512`, `decode 16` (behind 16 tokens), `decode 16 x 8` (8 sequences).
Each is warmed up once.

A peer that runs in Python is a class, of which `main` makes the program:

    Peer(model, threads)               loads the model
    prefill(prompt) -> seconds         a prompt, a list of token ids, up to its first token
    decode(prompts, steps) -> seconds  `steps` greedy tokens behind each prompt, without the prompts' own time
    say(text)                          prints the token that follows
"""

import argparse
import json
import os
import random

TEXT = "The capital of France is"
PREFILL = [128, 512, 2048]  # tokens of a prompt
DECODE = [(16, 1, 128), (1024, 1, 128), (16, 8, 64)]  # tokens before, sequences, steps
WARM_STEPS = 8


def decode_name(depth, batch):
    return f"decode {depth}" + (f" x {batch}" if batch > 1 else "")


MEASURES = [f"prefill {n}" for n in PREFILL] + [decode_name(depth, batch) for depth, batch, _ in DECODE]


def fresh_prompts(tokens, batch=1):
    """Ids that no earlier prompt began with: some peers keep what they computed of a prefix."""
    return [[random.randrange(100, 40000) for _ in range(tokens)] for _ in range(batch)]


def emit(measure, rate):
    print(json.dumps({"measure": measure, "value": round(rate, 2)}), flush=True)


def command_line():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--samples", type=int, default=1, help="of each measure")
    return parser


def main(peer_class):
    parser = command_line()
    parser.add_argument("--first", action="store_true")
    arguments = parser.parse_args()
    peer = peer_class(arguments.model, arguments.threads)
    if arguments.first:
        peer.say(TEXT)
        os._exit(0)  # how long a peer takes to end is not measured
    for tokens in PREFILL:
        peer.prefill(*fresh_prompts(tokens))
        for _ in range(arguments.samples):
            emit(f"prefill {tokens}", tokens / peer.prefill(*fresh_prompts(tokens)))
    for depth, batch, steps in DECODE:
        peer.decode(fresh_prompts(depth, batch), WARM_STEPS)
        for _ in range(arguments.samples):
            seconds = peer.decode(fresh_prompts(depth, batch), steps)
            emit(decode_name(depth, batch), batch * steps / seconds)

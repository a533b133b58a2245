"""CTranslate2 on a folder made by its converter, int8 weights, other arithmetic in f32.

It has no tokenizer, so `first` starts from the ids of the text. It has no clock either: decoding is the time with steps,
less the time without.
"""

import json
import pathlib
import time

import common
import ctranslate2

TEXT_IDS = [504, 3575, 282, 4649, 314]  # common.TEXT


class Peer:
    def __init__(self, model, threads):
        self.words = json.loads((pathlib.Path(model) / "vocabulary.json").read_text())
        self.generator = ctranslate2.Generator(
            model, device="cpu", intra_threads=threads, inter_threads=1, compute_type="int8_float32"
        )

    def generate(self, prompts, tokens):
        """Seconds, and the tokens of the first sequence."""
        words = [[self.words[i] for i in prompt] for prompt in prompts]
        start = time.perf_counter()
        results = self.generator.generate_batch(
            words, max_length=tokens, min_length=tokens, sampling_topk=1, include_prompt_in_result=False
        )
        return time.perf_counter() - start, results[0].sequences[0]

    def prefill(self, prompt):
        return self.generate([prompt], 1)[0]

    def decode(self, prompts, steps):
        without = self.generate(prompts, 1)[0]
        return self.generate(prompts, steps + 1)[0] - without

    def say(self, text):
        print(self.generate([TEXT_IDS], 1)[1][0].replace("Ġ", " "), flush=True)


common.main(Peer)

"""PyTorch with transformers on a Hugging Face folder, in bf16."""

import time

import common
import torch
from transformers import AutoTokenizer, DynamicCache, LlamaForCausalLM


class Peer:
    def __init__(self, model, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.folder = model
        self.model = LlamaForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()

    def step(self, ids, cache):
        """The best next token of each sequence: [sequences, 1]."""
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(-1, keepdim=True)

    def prefill(self, prompt):
        start = time.perf_counter()
        self.step(torch.tensor([prompt]), DynamicCache())
        return time.perf_counter() - start

    def decode(self, prompts, steps):
        cache = DynamicCache()
        token = self.step(torch.tensor(prompts), cache)
        start = time.perf_counter()
        for _ in range(steps):
            token = self.step(token, cache)
        return time.perf_counter() - start

    def say(self, text):
        tokenizer = AutoTokenizer.from_pretrained(self.folder)
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        print(tokenizer.decode(self.step(ids, DynamicCache())[0]), flush=True)


common.main(Peer)

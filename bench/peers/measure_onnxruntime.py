"""ONNX Runtime GenAI on a folder made by its model builder."""

import json
import time

import common
import numpy
import onnxruntime_genai


class Peer:
    def __init__(self, model, threads):
        config = onnxruntime_genai.Config(model)
        options = {"intra_op_num_threads": threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self.model = onnxruntime_genai.Model(config)

    def generator(self, length, batch=1):
        parameters = onnxruntime_genai.GeneratorParams(self.model)
        parameters.set_search_options(max_length=length, min_length=length, batch_size=batch, do_sample=False)
        return onnxruntime_genai.Generator(self.model, parameters)

    def prefill(self, prompt):
        generator = self.generator(len(prompt) + 4)
        start = time.perf_counter()
        generator.append_tokens(numpy.array([prompt], dtype=numpy.int32))
        generator.generate_next_token()
        return time.perf_counter() - start

    def decode(self, prompts, steps):
        generator = self.generator(len(prompts[0]) + steps + 2, len(prompts))
        generator.append_tokens(numpy.array(prompts, dtype=numpy.int32))
        generator.generate_next_token()
        start = time.perf_counter()
        for _ in range(steps):
            generator.generate_next_token()
        return time.perf_counter() - start

    def say(self, text):
        tokenizer = onnxruntime_genai.Tokenizer(self.model)
        ids = tokenizer.encode(text)
        generator = self.generator(len(ids) + 4)
        generator.append_tokens(ids)
        generator.generate_next_token()
        print(tokenizer.decode(generator.get_next_tokens()), flush=True)


common.main(Peer)

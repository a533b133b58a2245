"""OpenVINO GenAI on a GGUF file. Its own clock gives the time to the first token and the time per token."""

import time

import common
import numpy
import openvino
import openvino_genai


class Peer:
    def __init__(self, model, threads):
        self.pipeline = openvino_genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=threads)

    def generate(self, prompts, tokens):
        config = openvino_genai.GenerationConfig(
            max_new_tokens=tokens, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        ids = numpy.array(prompts, dtype=numpy.int64)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
        return self.pipeline.generate(inputs, config).perf_metrics

    def prefill(self, prompt):
        return self.generate([prompt], 1).get_ttft().mean / 1000

    def decode(self, prompts, steps):
        if len(prompts) == 1:
            return self.generate(prompts, steps + 1).get_tpot().mean / 1000 * steps
        start = time.perf_counter()  # a batch has no time per token: with steps, less without
        self.generate(prompts, 1)
        between = time.perf_counter()
        # Other prompts, since the first have left their prefix behind.
        self.generate(common.fresh_prompts(len(prompts[0]), len(prompts)), steps + 1)
        return time.perf_counter() - between - (between - start)

    def say(self, text):
        def stream(piece):
            print(piece, flush=True)
            return openvino_genai.StreamingStatus.STOP

        self.pipeline.generate(text, max_new_tokens=1, apply_chat_template=False, do_sample=False, streamer=stream)


common.main(Peer)

"""to_huggingface.py GGUF FOLDER: the weights of a GGUF file, dequantised, as a Hugging Face folder in f32.

This is what the converters of ONNX Runtime GenAI and CTranslate2 read.
"""

import pathlib
import sys

import torch
from transformers import AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

gguf, folder = pathlib.Path(sys.argv[1]), sys.argv[2]
source = dict(pretrained_model_name_or_path=gguf.parent, gguf_file=gguf.name)
loaded = LlamaForCausalLM.from_pretrained(**source, dtype=torch.float32)

# A model of its own, since what was loaded remembers that it came from a quantised file.
settings = loaded.config.to_dict()
settings.pop("quantization_config", None)
config = LlamaConfig(**settings)
config.architectures = ["LlamaForCausalLM"]
model = LlamaForCausalLM(config).float()
model.load_state_dict(loaded.state_dict())
model.tie_weights()
model.generation_config = GenerationConfig(
    bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id
)
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(**source).save_pretrained(folder)

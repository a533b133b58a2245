"""Makes storage.gguf: for each type a tensor of arbitrary blocks, "NAME", and the numbers that the
gguf package (https://pypi.org/project/gguf) reads from it, "NAME.values"."""
import gguf
import numpy as np

rng = np.random.default_rng(17)
writer = gguf.GGUFWriter("storage.gguf", "none")
# Where the halves of a block lie: they get finite values, everything else any bits.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
}
for name, halves in HALVES.items():
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (2, 256 // values, size), dtype=np.uint8)
    for at in halves:
        numbers = rng.standard_normal(blocks.shape[:2]).astype(np.float16)
        blocks[:, :, at : at + 2] = numbers[..., None].view(np.uint8)
    rows = blocks.reshape(2, -1)
    writer.add_tensor(name.lower(), rows, raw_dtype=kind)
    writer.add_tensor(name.lower() + ".values", gguf.quants.dequantize(rows, kind))
numbers = rng.standard_normal((2, 64)).astype(np.float32)
numbers[0, :6] = [0.0, -0.0, 65504, 2**-24, -(2**-15), 1]
half = numbers.astype(np.float16)
writer.add_tensor("f16", half)
writer.add_tensor("f16.values", half.astype(np.float32))
bfloat = gguf.quants.quantize(numbers, gguf.GGMLQuantizationType.BF16)
writer.add_tensor("bf16", bfloat, raw_dtype=gguf.GGMLQuantizationType.BF16)
writer.add_tensor("bf16.values", gguf.quants.dequantize(bfloat, gguf.GGMLQuantizationType.BF16))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

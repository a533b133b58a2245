"""The engines that are compared: each has a command that measures it and one that shows its first token."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import common
import install

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Engine:
    name: str
    title: str
    weights: str
    version: str
    measure: list  # both with --threads T behind
    first: list


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


# title, weights, virtual environment, package, model
IN_PYTHON = {
    "openvino": ("OpenVINO GenAI", "Q4_1", "openvino", "openvino-genai", "GGUF"),
    "onnxruntime": ("ONNX Runtime GenAI", "int4", "onnxruntime", "onnxruntime-genai", "ort-int4"),
    "ctranslate2": ("CTranslate2", "int8", "ctranslate2", "ctranslate2", "ct2-int8"),
    "pytorch": ("PyTorch", "bf16", "convert", "torch", "hf"),
}
LLAMA = {"llama-q4_0": ("Q4_0", "q4_0.gguf"), "llama-q4_1": ("Q4_1", "GGUF")}  # weights, model
PEERS = [*IN_PYTHON, *LLAMA]
DEFAULT = [name for name in PEERS if name != "pytorch"]


def peer(name, directory, gguf):
    if name in LLAMA:
        weights, model = LLAMA[name]
        model, programs = gguf if model == "GGUF" else directory / model, directory / "llama/bin"
        measure = [sys.executable, HERE / "measure_llama.py", model, "--programs", programs]
        first = [programs / "llama-completion", "-m", model, "-p", common.TEXT, "-n", 1, "--temp", 0, "-c", 512]
        first += ["-no-cnv", "--no-warmup", "--no-display-prompt"]
        return Engine(name, "llama.cpp", weights, f"of {install.LLAMA.replace('==', ' ')}", measure, first)
    title, weights, environment, package, model = IN_PYTHON[name]
    python = directory / environment / "bin/python"
    version = output(python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))")
    measure = [python, HERE / f"measure_{name}.py", gguf if model == "GGUF" else directory / model]
    return Engine(name, title, weights, version, measure, [*measure, "--first"])


def tenon(executable):
    """With the commit of this tree, if it has one."""
    version = json.loads(output(executable, "info", "--json"))["tenon_version"]
    describe = ["git", "-C", HERE, "describe", "--always", "--dirty", "--abbrev=10"]
    commit = subprocess.run(describe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
    measure = [sys.executable, HERE / "measure_tenon.py", executable]
    first = [executable, common.TEXT, "-n", 1]
    return Engine("tenon", "Tenon", "Q4_1", f"{version} {commit}".strip(), measure, first)

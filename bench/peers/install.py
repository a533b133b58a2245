"""Installs the peers, each into a virtual environment of its own, builds llama.cpp and converts the model for each.

Everything lies in one directory and is made once:

    DIR/openvino, onnxruntime, ctranslate2    virtual environments
    DIR/convert                               another, large: PyTorch and the converters of the last two
    DIR/llama-src, llama                      llama.cpp's source, its programs in llama/bin
    DIR/hf, ort-int4, ct2-int8, q4_0.gguf     the model of each
"""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

ONNXRUNTIME = ["onnxruntime-genai==0.18.0", "onnxruntime==1.32.0"]
CTRANSLATE2 = ["ctranslate2==4.8.5"]
PYTORCH = ["torch==2.15.0", "transformers==5.24.0", "accelerate==1.15.0"]
ENVIRONMENTS = {
    "openvino": ["openvino-genai==2026.4.1.0"],
    "onnxruntime": ONNXRUNTIME,
    "ctranslate2": CTRANSLATE2,
    "convert": PYTORCH + ONNXRUNTIME + CTRANSLATE2 + ["onnx==1.23.2", "onnx-ir==1.1.0", "gguf==0.19.0"],
}
LLAMA = "llama-cpp-python==0.3.36"  # its source package holds llama.cpp
LLAMA_PROGRAMS = ["llama-bench", "llama-batched-bench", "llama-completion", "llama-quantize"]
LLAMA_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DLLAMA_CURL=OFF "
    "-DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF "
    "-DLLAMA_BUILD_EXAMPLES=OFF"
).split()


class Installer:
    def __init__(self, directory, gguf, jobs):
        self.directory, self.gguf, self.jobs = directory, gguf, jobs
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / "install.log"

    def install(self, peer):
        """The peer's name is that of engines.py."""
        if peer in ENVIRONMENTS:
            self.environment(peer)
        if peer == "onnxruntime":
            self.make("ort-int4", self.convert_for_onnxruntime)
        if peer == "ctranslate2":
            self.make("ct2-int8", self.convert_for_ctranslate2)
        if peer == "pytorch":
            self.hugging_face()
        if peer.startswith("llama"):
            self.make("llama", self.build_llama)
        if peer == "llama-q4_0":
            self.make("q4_0.gguf", self.requantise)

    def make(self, name, how):
        """Makes DIR/name by how(path); it is there once DIR/.name.done is."""
        path, done = self.directory / name, self.directory / f".{name}.done"
        if not done.exists():
            print(f"installing {name}", flush=True)
            how(path)
            done.touch()
        return path

    def run(self, *command, directory=None):
        with open(self.log, "a") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n")
            log.flush()
            if subprocess.run(command, cwd=directory, stdout=log, stderr=log).returncode:
                raise RuntimeError(f"{pathlib.Path(command[0]).name} failed; {self.log} says why")

    def environment(self, name):
        def create(path):
            self.run(sys.executable, "-m", "venv", "--clear", path)
            self.run(path / "bin/python", "-m", "pip", "install", "-q", *ENVIRONMENTS[name])

        return self.make(name, create) / "bin"

    def hugging_face(self):
        python = self.environment("convert") / "python"
        return self.make("hf", lambda path: self.run(python, HERE / "to_huggingface.py", self.gguf, path))

    def convert_for_onnxruntime(self, path):
        """Accuracy level 4 lets it compute in int8, which is its fastest."""
        source, python = self.hugging_face(), self.environment("convert") / "python"
        command = [python, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", path]
        command += ["-c", self.directory / "ort-cache", "-p", "int4", "-e", "cpu"]
        self.run(*command, "--extra_options", "int4_accuracy_level=4")

    def convert_for_ctranslate2(self, path):
        source, programs = self.hugging_face(), self.environment("convert")
        command = [programs / "ct2-transformers-converter", "--model", source, "--output_dir", path]
        self.run(*command, "--quantization", "int8", "--force")

    def build_llama(self, path):
        source = self.directory / "llama-src"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        download = ["-m", "pip", "download", "-q", "--no-deps", "--no-binary", LLAMA.split("=")[0], LLAMA, "-d", source]
        self.run(sys.executable, *download)
        self.run("tar", "xzf", next(source.glob("*.tar.gz")), "-C", source, "--strip-components=1")
        self.run("cmake", "-S", source / "vendor/llama.cpp", "-B", path, "-G", "Ninja", *LLAMA_OPTIONS)
        self.run("cmake", "--build", path, f"-j{self.jobs}", "--target", *LLAMA_PROGRAMS)

    def requantise(self, path):
        self.run(self.directory / "llama/bin/llama-quantize", "--allow-requantize", self.gguf, path, "Q4_0", "2")

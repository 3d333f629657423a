"""One release for all tests: HOST is this machine's address as pods reach it, IMAGE what the nodes have already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.elsewhere import Elsewhere, elsewhere_at
from tests.engine_fixture import Servers
from tests.kubernetes.cluster import Cluster


@pytest.fixture(scope="session")
def host() -> str:
    return os.environ["HOST"]


@pytest.fixture(scope="session")
def elsewhere(host: str, engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    with elsewhere_at(host, engine, tmp_path_factory.mktemp("elsewhere")) as servers:
        yield servers


@pytest.fixture(scope="session")
def cluster(elsewhere: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Installed as docs/howto/kubernetes.md does it, with the sample site in it. Nothing of it is left at the end."""
    one = Cluster(f"pagewire-{uuid4().hex[:8]}", os.environ["IMAGE"], tmp_path_factory.mktemp("cluster"))
    one.run("kubectl", "create", "namespace", one.namespace)
    try:
        one.use(elsewhere)
        one.install()
        one.fill()
        yield one
    finally:
        one.run("kubectl", "delete", "namespace", one.namespace)

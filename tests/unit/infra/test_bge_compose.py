"""What must hold of docker-compose.bge.yml and docker-compose.gpu.yml."""

from __future__ import annotations

import yaml

from tests.unit.infra.test_compose import BGE_TEXT, ENV_EXAMPLE, ROOT, SERVICES, VARIABLE

BGE = yaml.safe_load(BGE_TEXT)["services"]
GPU = yaml.safe_load((ROOT / "infra/docker/docker-compose.gpu.yml").read_text(encoding="utf-8"))["services"]
LOADING = {"embed", "bulk", "rephrase", "retrieve", "answer"}


def test_the_weights_are_where_the_setting_says_in_all_that_may_load_them() -> None:
    assert set(BGE) == LOADING | {"gateway"} <= set(SERVICES)
    for service in BGE.values():
        (mount,) = service["volumes"]
        assert mount["target"] == service["environment"]["PAGEWIRE_BGE_MODEL"]
        assert mount["read_only"]
        assert not mount["bind"]["create_host_path"]  # else an empty folder would be the weights


def test_a_gpu_is_reserved_for_the_workers_that_embed() -> None:
    assert set(GPU) == LOADING
    for service in GPU.values():
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def test_every_variable_is_explained() -> None:
    assert all(f"#{found['name']}=" in ENV_EXAMPLE for found in VARIABLE.finditer(BGE_TEXT))

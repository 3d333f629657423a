"""Metrics on a port of their own: there, and no longer at the port that visitors reach."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI

from gateway.edge.gauges import application, metrics_served
from tests.fakes.ports import FakePorts


async def get(app: FastAPI, path: str) -> tuple[str, str]:
    """As one of the port's threads answers, while the gateway's loop goes on."""
    said: list[str] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        said.append(status)

    answer = application(app.state.edge.gauges, asyncio.get_running_loop())
    environ: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "QUERY_STRING": ""}
    body = await asyncio.to_thread(lambda: b"".join(answer(environ, start)))
    return said[0], body.decode()


async def test_the_port_tells_the_gauges_and_nothing_else(app: FastAPI, fakes: FakePorts) -> None:
    status, body = await get(app, "/metrics")
    assert status == "200 OK"
    assert 'pagewire_service_up{service="kafka"} 1.0' in body
    assert (await get(app, "/healthz"))[0] == "200 OK"
    assert (await get(app, "/v1/admin/status"))[0] == "404 Not Found"


async def test_visitors_no_longer_find_them(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    assert (await stranger.get("/metrics")).status_code == 200
    edge = app.state.edge
    app.state.edge = type(edge)(**vars(edge) | {"settings": edge.settings.model_copy(update={"metrics_port": 9100})})
    refused = await stranger.get("/metrics")
    assert (refused.status_code, refused.json()["code"]) == (404, "not-found")


async def test_without_the_setting_there_is_no_port(app: FastAPI) -> None:
    with metrics_served("127.0.0.1", None, app.state.edge.gauges) as port:
        assert port is None

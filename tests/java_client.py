"""Java's own HTTP client with its defaults, which offers HTTP/2 with each request: `python -m tests.java_client`.

Reads requests from stdin as JSON, `[[method, url, {header: value}, body], ...]`, sends one after the other, and prints
what comes back, `[[status, body], ...]`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jpype

from infra.engine.java import find


def send(client: Any, method: str, url: str, headers: dict[str, str], body: str) -> tuple[int, str]:
    """One request and its answer."""
    request, answer = jpype.JClass("java.net.http.HttpRequest"), jpype.JClass("java.net.http.HttpResponse")
    building = request.newBuilder(jpype.JClass("java.net.URI").create(url))
    for name, value in headers.items():
        building = building.header(name, value)
    sent = building.method(method, request.BodyPublishers.ofString(body)).build()
    got = client.send(sent, answer.BodyHandlers.ofString())
    return int(got.statusCode()), str(got.body())


if __name__ == "__main__":
    jpype.startJVM("--enable-native-access=ALL-UNNAMED", jvmpath=str(find().library))
    java = jpype.JClass("java.net.http.HttpClient").newHttpClient()
    print(json.dumps([send(java, *request) for request in json.load(sys.stdin)]))

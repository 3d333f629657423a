"""Runs in a pod: ask the gateways' Service all the time, until /tmp/over is there, and say what became of it."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import httpx


def ask(url: str, key: str) -> tuple[float, str]:
    """How long it took, and what was wrong with it."""
    since = monotonic()
    try:
        question = {"question": "What does a library card cost?", "lang": "en"}
        reply = httpx.post(url, json=question, headers={"Authorization": f"Bearer {key}"}, timeout=120)
        cited = {one["page_id"] for one in reply.json()["sources"] if one["cited"]}
        wrong = "" if "library" in cited else reply.text[:200]
    except (httpx.HTTPError, KeyError, ValueError) as err:
        wrong = repr(err)
    return monotonic() - since, wrong


with ThreadPoolExecutor(64) as asking:
    asked = []
    while not Path("/tmp/over").exists():
        asked.append(asking.submit(ask, *sys.argv[1:]))
        sleep(0.5)
said = [one.result() for one in asked]
print(json.dumps({"asked": len(said), "longest": max(took for took, _ in said), "wrong": [w for _, w in said if w]}))

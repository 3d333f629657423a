"""Runs of evaluations to be published, for the unit, contract and browser tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipelines.evaluate.publication import published
from schemas.evaluation import NewRun, PublishedRun
from tests.asking import NOON

BEFORE = {"one": (1.0, "Eighteen euros a year [1]."), "two": (1.0, "Daily from nine [1]."), "three": (0.0, "")}
AFTER = {"one": (1.0, "Eighteen euros each year [1]."), "two": (0.0, "Daily from ten [1]."), "three": (1.0, "No.")}


def result(case: str, right: float, answer: str, **more: Any) -> dict[str, Any]:
    told = {"case": case, "question": f"What of {case}?", "lang": "en", "tags": ["prices"], "expect": "answer"}
    return told | {"pages": ["library"], "answer": answer, "figures": {"right": right, "refusal": 1.0}} | more


def new_run(days: float = 0, said: dict[str, tuple[float, str]] | None = None, **more: Any) -> NewRun:
    """Begun so many days after noon; `said`: whether it is right, and the answer, by case."""
    said = BEFORE if said is None else said
    right = sum(each for each, _ in said.values()) / len(said)
    figure = {"cases": len(said), "mean": right, "low": right / 2, "high": (1 + right) / 2}
    told: dict[str, Any] = {
        "dataset": "town",
        "version": "3",
        "fingerprint": "5f0c2a81d9e4",
        "url": "http://127.0.0.1:8080",
        "begun": NOON + timedelta(days=days),
        "cases": len(said),
        "asked": len(said),
        "groups": {"all": {"right": figure}, "lang en": {"right": figure}},
        "latency_ms": {"p50": 80.0, "p95": 140.0},
        "results": [result(case, *each) for case, each in said.items()],
    }
    return NewRun.model_validate(told | more)


def run(
    days: float = 0, said: dict[str, tuple[float, str]] | None = None, site: str = "town", **more: Any
) -> PublishedRun:
    return published(new_run(days, said, **more), site, "admin", NOON + timedelta(days=days))

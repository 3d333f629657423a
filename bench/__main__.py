"""Measurements, one command each: `python -m bench NAME`. From a checkout only: no part of what is installed.

Each prints a table and writes .bench/NAME.json. They start a system of their own, and nothing is left of it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module

import typer

from bench.report import Data

ANSWERS = (
    "fidelity",
    "quality",
    "flows",
    "gate",
    "visitors",
    "sureness",
    "follow-ups",
    "citations",
    "floors",
    "gaps",
    "masking",
)
CAPACITY = ("latency", "agents", "retrieval", "ingest", "edits", "lanes", "shares", "footprint", "scale", "sizing")
EVALUATION = ("gate-errors",)
ELSEWHERE = {"footprint": ("servers", "footprint")}
NAMES = (*ANSWERS, *CAPACITY, *EVALUATION)


def measurement(name: str) -> Callable[..., None]:
    """What `python -m bench NAME` calls: `main` of the module of that name."""
    module, function = ELSEWHERE.get(name, (name.replace("-", "_"), "main"))
    found: Callable[..., None] = getattr(import_module(f"bench.{module}"), function)
    return found


def everything(data: Data) -> None:
    """All of them, one after the other."""
    for name in NAMES:
        run = measurement(name)
        run(*[data] if "data" in inspect.signature(run).parameters else [])


def app() -> typer.Typer:
    """The commands: the one that is asked for, else all. To load all modules takes seconds."""
    made = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
    made.callback()(lambda: None)
    for name in [name for name in NAMES if name in sys.argv[1:3]] or NAMES:
        made.command(name)(measurement(name))
    made.command("all")(everything)
    return made


if __name__ == "__main__":
    app()()

"""Python tools: functions that installed packages offer under the entry point `pagewire.tools`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from connectors.tools.threads import InThread
from pipelines.query.answer.tools.registry import Tool
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.near_names import some_of

GROUP = "pagewire.tools"


def python_tool(name: str, where: str, installed: Iterable[EntryPoint] | None = None) -> Tool:
    """The tool of this name.

    Args:
        where: the setting that names it, for messages.
        installed: default: the entry points of this environment.

    Raises:
        SettingsError: there is none, or it cannot be loaded.
    """
    known = {each.name: each for each in (entry_points(group=GROUP) if installed is None else installed)}
    if name not in known:
        there = some_of(known) or "none"
        raise SettingsError(f"{where}: no installed package has a tool {name!r} (entry points {GROUP}: {there})")
    try:
        function = known[name].load()
        tool = Tool.of(function)
    except Exception as err:
        raise SettingsError(
            f"{where}: the tool {name!r} ({known[name].value}) cannot be loaded: {type(err).__name__}: {err}"
        ) from err
    title = name.replace("_", " ").capitalize()
    return replace(tool, name=name, title=title, function=InThread(name, function))

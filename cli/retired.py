"""Commands that are gone, each with what does the same now: not in the help, named where one is called."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

# By the words after `pagewire`.
RETIRED = {
    "check": "`pagewire eval check`",
    "datasets": "`pagewire eval datasets`",
    "eval published": "the console, or /v1/admin/sites/SITE/evaluations",
    "evaluate": "`pagewire eval run`",
    "evaluations": "the console, or /v1/admin/sites/SITE/evaluations",
    "examples": "the console, or /v1/admin/sites/SITE/examples",
    "experiment": "`pagewire eval sweep`",
    "gaps": "`pagewire eval gaps`",
    "judge-agreement": "`pagewire eval calibrate`",
    "privacy": "the console, or /v1/admin/sites/SITE/privacy",
    "rebuilds": "`pagewire index list`",
}


class GroupWithRetired(TyperGroup):
    """A group that answers to a retired command with what does the same now."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises: UsageError: a command of that name was retired."""
        name = args[0]
        successor = RETIRED.get(name if ctx.parent is None else f"{ctx.info_name} {name}")
        if successor and not ctx.resilient_parsing:  # a completion that fails prints a traceback
            ctx.fail(f"`{name}` is no command any more: use {successor}")
        return super().resolve_command(ctx, args)

"""`pagewire index`: generations of a site's index, built, put live, taken back and compared with the change log."""

from __future__ import annotations

import typer

from cli.audit import audit
from cli.generations import discard, promote, rebuilds, rollback
from cli.rebuild import rebuild

app = typer.Typer(no_args_is_help=True, help="The indexes of a site: build one anew, make it live, compare it.")
app.command("list")(rebuilds)
app.command()(rebuild)
app.command()(promote)
app.command()(rollback)
app.command()(discard)
app.command()(audit)

"""The console script. Where Pagewire does not run it says so, before anything is imported that fails to there."""

from __future__ import annotations

import platform
import sys

from infra.platforms import refusal

NO_SERVICE = 3  # as cli/output.py has it, which is not imported here


def main() -> None:
    """Entry point of the console script."""
    refused = refusal(platform.system(), platform.machine())
    if refused is not None:
        print(refused, file=sys.stderr)
        sys.exit(NO_SERVICE)

    from cli.main import main as run

    run()

"""`python -m infra.engine` downloads the servers before a first start: `make servers`. See also `pagewire engine`."""

from __future__ import annotations

import asyncio
import sys

from infra.engine import EngineError, jars, open_progress
from infra.engine.settings import default_cache

if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("python -m infra.engine takes no arguments; see `pagewire engine --help`")
    try:
        with open_progress() as progress:
            asyncio.run(jars.fetch(default_cache(), progress))
    except EngineError as err:
        sys.exit(str(err))

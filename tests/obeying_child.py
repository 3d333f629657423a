"""A child process for tests: it does what its orders say. `python -m tests.obeying_child`."""

from __future__ import annotations

import json
import os
import sys
import time

from adapters.child_process import Limits, answers, block, put, within


def main() -> None:
    out = answers()
    if "unready" in sys.argv:
        sys.exit(3)
    print("what libraries print is no answer")
    put(out, b"")
    while (order := block(sys.stdin.buffer)) is not None:
        do, *args = json.loads(order)
        if do == "die":
            os.kill(os.getpid(), args[0])
        elif do == "hang":
            time.sleep(600)
        elif do == "spin":
            with within(Limits(computing=0.2, waiting=600)):
                while True:
                    pass
        elif do == "environment":
            args = sorted(os.environ)
        put(out, json.dumps([os.getpid(), *args]).encode())


if __name__ == "__main__":
    main()

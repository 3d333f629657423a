"""Kafka by the local engine's jars, told what to do by the variables of the image apache/kafka.

`KAFKA_MESSAGE_MAX_BYTES=9437184` is the broker's `message.max.bytes=9437184`; `KAFKA_HEAP_OPTS` are Java's options.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from infra.engine.servers import kafka_server, prepare_kafka
from infra.engine.settings import LocalEngineSettings

HEAP = "KAFKA_HEAP_OPTS"
PREFIX = "KAFKA_"
JARS = Path("/engine")


def main() -> None:
    """Write the broker's files as the local engine does, with the container's settings, and become the broker."""
    (heap,) = re.findall(r"-Xmx(\w+)", os.environ[HEAP])
    settings = LocalEngineSettings(Path("/tmp"), kafka_heap=heap, cache=JARS)
    server = kafka_server(settings.root)
    prepare_kafka(server, settings, port=9092, controller_port=9093)
    given = {
        name.removeprefix(PREFIX).lower().replace("_", "."): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name != HEAP
    }
    # Nothing of the engine's own: what the broker does is what docker-compose.yml says.
    properties = server.folder / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()), encoding="ascii")
    run = json.loads(server.run_file.read_text(encoding="utf-8"))
    run["settings"]["data"] = given["log.dirs"]
    server.run_file.write_text(json.dumps(run), encoding="utf-8")
    os.execvp("python", ["python", "-P", "/app/infra/engine/server_process.py", str(server.run_file)])


main()

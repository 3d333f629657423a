"""The process of one server: a JVM inside Python, started as `python -P server_process.py RUN [PARENT]`.

Why not `java` directly: Elasticsearch's launcher is not published as a jar, so JPype builds its node from classes. And
a JVM cannot notice that its parent died, but Python can. Why a script, by path: it imports no package of ours, so it
starts fast and stays small.

RUN is a JSON file: {"server": "kafka" | "elasticsearch", "java": libjvm, "jvm": [option, ...], "settings": {...}}.
RUN's path in the command line identifies the process (see state.py). With PARENT, a process id, the server stops when
that process has ended in any way.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jpype

PARENT_POLL_INTERVAL = 0.5  # seconds
ORPHAN_STOP_TIMEOUT = 20.0  # seconds for the clean stop of an orphan


def follow(parent: int) -> None:
    """Stop this process once `parent` is no longer its parent.

    Polling the parent's id works on every Unix, for any end of the parent. A pipe to the parent would stay open in
    processes that the parent has forked, and Linux' PR_SET_PDEATHSIG fires when the *thread* ends that started us.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_STOP_TIMEOUT)
    os._exit(1)


def start_jvm(library: str, options: list[str]) -> None:
    """Start the JVM of this libjvm (see java.py) in this process. Python handles signals (-Xrs)."""
    jpype.startJVM("-Xrs", *options, jvmpath=library)


def start_kafka(settings: dict[str, str]) -> Callable[[], None]:
    """Format a new data folder, and start the broker. Returns a function that stops it.

    Does not use Kafka's own `main`, which stops in a JVM shutdown hook: JPype's hook interrupts every thread, which is
    a fatal fault for Kafka.
    """
    if not (Path(settings["data"]) / "meta.properties").exists():
        # Brokers of one cluster get its id from the settings.
        cluster = settings.get("cluster") or str(jpype.JClass("org.apache.kafka.common.Uuid").randomUuid())
        arguments = ["format", "--ignore-formatted", "-t", cluster, "-c", settings["properties"]]
        # A broker with SCRAM logins needs its users before the first request.
        for user in filter(None, settings.get("scram", "").splitlines()):
            arguments += ["--add-scram", user]
        stdout = jpype.JClass("java.lang.System").out
        if jpype.JClass("kafka.tools.StorageTool").execute(arguments, stdout) != 0:
            raise RuntimeError("Kafka could not format its data folder")
    properties = jpype.JClass("org.apache.kafka.common.utils.Utils").loadProps(settings["properties"])
    config = jpype.JClass("kafka.server.KafkaConfig").fromProps(properties, False)
    system_time = jpype.JClass("org.apache.kafka.common.utils.Time").SYSTEM
    server = jpype.JClass("kafka.server.KafkaRaftServer")(config, system_time)
    server.startup()

    def stop() -> None:
        server.shutdown()
        server.awaitShutdown()

    return stop


def start_elasticsearch(settings: dict[str, str]) -> Callable[[], None]:
    """Start a node as Elasticsearch's launcher does, without its command line and sandbox. Returns a function that
    stops it.
    """
    no_override = jpype.JClass("java.util.Map").of()
    builder = jpype.JClass("org.elasticsearch.common.settings.Settings").builder()
    for name, value in settings.items():
        if name != "path.conf":
            builder.put(name, value)
    config = jpype.JClass("java.nio.file.Path").of(settings["path.conf"])
    default_name = jpype.JProxy(
        "java.util.function.Supplier", dict={"get": lambda: jpype.JString(settings["node.name"])}
    )
    logs = jpype.JClass("org.elasticsearch.common.logging.LogConfigurator")
    logs.configureESLogging()
    environment = jpype.JClass("org.elasticsearch.node.InternalSettingsPreparer").prepareEnvironment(
        builder.build(), no_override, config, default_name
    )
    logs.setNodeName(settings["node.name"])
    logs.configure(environment, True)
    jpype.JClass("org.elasticsearch.bootstrap.BootstrapInfo").init()
    loaders = jpype.JClass("org.elasticsearch.plugins.PluginsLoader")
    loader = loaders.createPluginsLoader(
        loaders.loadModulesBundles(environment.modulesDir()),
        loaders.loadPluginsBundles(environment.pluginsDir()),
        no_override,
    )
    node = jpype.JClass("org.elasticsearch.node.Node")(environment, loader)
    node.start()
    return lambda: node.close()


def main(run_file: str, parent: int | None) -> int:
    """Run the server of `run_file` until SIGTERM. Returns the exit code."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    if parent is not None:
        threading.Thread(target=follow, args=(parent,), daemon=True).start()
    run = json.loads(Path(run_file).read_text(encoding="utf-8"))
    try:
        start_jvm(run["java"], run["jvm"])
        stop = {"kafka": start_kafka, "elasticsearch": start_elasticsearch}[run["server"]](run["settings"])
        stopping.wait()
        stop()
    except Exception:
        logging.exception("the server failed")
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
    sys.stdout.flush()
    os._exit(code)  # an orderly exit would wait for remaining Java threads

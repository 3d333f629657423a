"""The process of one server: a Java machine inside Python, started as `python -P server_process.py RUN [PARENT]`.

Why not `java` directly: Elasticsearch's own launcher is not published as a jar, so its node has to be
built through its classes, which JPype lets us do; and a JVM cannot notice that its parent died, Python
can. Why as a script, by path: it imports nothing of ours, so it starts fast and stays small.

RUN is a JSON file: {"server": "kafka" | "elasticsearch", "java": libjvm, "jvm": [option, ...], "settings": {...}}.
Who is alive is told by RUN's path in the process's command line (see state.py). With PARENT, a process
id, the server stops when that process is gone, however it went.
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

PARENT_LOOK_INTERVAL = 0.5  # seconds
ORPHAN_STOP_TIMEOUT = 20.0  # seconds an orphan has for a clean stop


def follow(parent: int) -> None:
    """Stop this process once `parent` is no longer its parent.

    A look at the parent's id works on every Unix and whatever became of the parent. A pipe to the parent
    would stay open in what the parent forked, and Linux' PR_SET_PDEATHSIG fires when the parent's
    *thread* ends that started us.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_LOOK_INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_STOP_TIMEOUT)
    os._exit(1)


def start_jvm(library: str, options: list[str]) -> None:
    """Start the Java machine of this file (see java.py) in this process; signals stay with Python (-Xrs)."""
    jpype.startJVM("-Xrs", *options, jvmpath=library)


def start_kafka(settings: dict[str, str]) -> Callable[[], None]:
    """Format the data folder when it is new, start the broker; returns what stops it.

    Not through Kafka's own `main`: it stops in a JVM shutdown hook, while JPype's hook interrupts every
    thread, and Kafka takes that for a fatal fault.
    """
    if not (Path(settings["data"]) / "meta.properties").exists():
        # Brokers that belong together are told their cluster's id.
        cluster = settings.get("cluster") or str(jpype.JClass("org.apache.kafka.common.Uuid").randomUuid())
        arguments = ["format", "--ignore-formatted", "-t", cluster, "-c", settings["properties"]]
        # A broker whose users log in by SCRAM must know them before it is asked the first time.
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
    """Do what Elasticsearch's launcher does, less its command line and its sandbox; returns what stops it."""
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
    """Run the server that `run_file` describes until SIGTERM; the process's exit code."""
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
    os._exit(code)  # Java threads that are left would keep an orderly exit waiting

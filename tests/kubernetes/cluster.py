"""The chart in a namespace of its own of the cluster that KUBECONFIG names, by kubectl and Helm."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sites.content import page_documents
from tests.elsewhere import PREFIX, Elsewhere
from tests.helm.chart import CHART, HELM, ROOT
from tests.secure_kafka import PASSWORD, USER

RELEASE = "pagewire"
ADMIN_KEY = "admin-key-of-the-ring"
TIMEOUT = 600.0  # seconds; on two cores, everything at once
GATEWAY = "deployment/pagewire-gateway"
# Small, so that the new pods of an upgrade fit beside the old ones on a small node.
RESOURCES = {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


class Cluster:
    """A namespace, and the release in it."""

    def __init__(self, namespace: str, image: str, home: Path) -> None:
        self.namespace = namespace
        self.image = image
        self._home = home
        self._servers: dict[str, Any] = {}

    def run(self, *command: str, given: str | None = None) -> str:
        """What it prints; raises AssertionError, with its last words, unless it exits with 0."""
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """In our namespace."""
        return self.run("kubectl", "--namespace", self.namespace, *arguments, given=given)

    def pagewire(self, *arguments: str) -> str:
        """A command in a gateway's pod."""
        return self.kubectl("exec", GATEWAY, "--", "pagewire", *arguments)

    def python(self, pod: str, code: str, *arguments: str) -> str:
        """What a program prints in a pod."""
        return self.kubectl("exec", "--stdin", pod, "--", "python", "-", *arguments, given=code)

    def use(self, servers: Elsewhere) -> None:
        """What is installed next gets at these, by Secrets made here."""
        self.secret(
            "pagewire",
            {
                "admin-key": ADMIN_KEY,
                "token-secret": "t" * 44,
                "kafka-password": PASSWORD,
                "elastic-key": servers.elastic.key,
            },
        )
        authority = servers.kafka.certificates.ca.read_text(encoding="ascii")
        self.secret("authority", {"ca.crt": authority})
        self._servers = {
            "kafka": {
                "bootstrapServers": servers.kafka.login,
                "topicPrefix": PREFIX,
                "securityProtocol": "SASL_SSL",
                "saslMechanism": "SCRAM-SHA-512",
                "user": USER,
                "ca": {"secret": "authority"},
            },
            "elasticsearch": {"url": servers.elastic.url, "ca": {"secret": "authority"}},
        }

    def secret(self, name: str, data: Mapping[str, str]) -> None:
        """Made, or changed."""
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(data)}
        self.kubectl("apply", "--filename", "-", given=json.dumps(made))

    def install(self, timeout: str = "8m", **more: Any) -> None:
        """Install, or upgrade to these values; returns when every pod is ready."""
        repository, tag = self.image.rsplit(":", 1)
        workers = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["workers"]
        values = {
            "image": {"repository": repository, "tag": tag},
            "config": {"sites": {"demo": {"languages": ["de", "en"]}}},
            "settings": {"PAGEWIRE_PARTITIONS": "4", "PAGEWIRE_REPLICATION": "1", "PAGEWIRE_REPLICAS": "0"},
            "secrets": {
                "PAGEWIRE_KAFKA_PASSWORD": {"secret": "pagewire", "key": "kafka-password"},
                "PAGEWIRE_ELASTICSEARCH_API_KEY": {"secret": "pagewire", "key": "elastic-key"},
            },
            "workers": {name: {"replicas": 1, "resources": RESOURCES} for name in workers},
            "gateway": {"resources": RESOURCES},
            **self._servers,
            **more,
        }
        file = self._home / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--values", str(file), "--wait", "--timeout", timeout)

    def helm(self, *arguments: str) -> str:
        """In our namespace."""
        return self.run(str(HELM), "--namespace", self.namespace, *arguments)

    def fill(self) -> None:
        """The sample site's English pages, and wait until they are found."""
        pages = [one for one in page_documents(ROOT / "sites/demo", "/site") if one["lang"] == "en"]
        lines = "".join(f"{json.dumps(page)}\n" for page in pages)
        self.kubectl("exec", "--stdin", GATEWAY, "--", "sh", "-c", "cat > /tmp/demo.ndjson", given=lines)
        self.pagewire("import", "demo", "/tmp/demo.ndjson")

    def pages(self) -> list[dict[str, Any]]:
        """All pages of the sample site that visitors find."""
        listed = self.kubectl("exec", GATEWAY, "--", "sh", "-c", "pagewire pages demo --json || test $? = 1")
        found: list[dict[str, Any]] = json.loads(listed)["pages"]
        return found

    def pods(self) -> set[str]:
        """Names of the release's pods that run and are not on their way out."""
        running = ("--field-selector", "status.phase=Running", "--selector", f"app.kubernetes.io/instance={RELEASE}")
        listed = json.loads(self.kubectl("get", "pods", *running, "--output", "json"))
        return {one["metadata"]["name"] for one in listed["items"] if "deletionTimestamp" not in one["metadata"]}

    def address(self) -> str:
        """The gateways' Service."""
        return self.kubectl("get", "service", "pagewire-gateway", "--output", "jsonpath={.spec.clusterIP}")

    def ended(self, job: str) -> str:
        """What a Job printed, when it is complete."""
        self.kubectl("wait", "--for=condition=complete", f"job/{job}", "--timeout", f"{TIMEOUT:.0f}s")
        return self.kubectl("logs", f"job/{job}")

    def job(self, kind: str) -> str:
        """The name of the chart's Job of this kind."""
        listed = self.kubectl("get", "jobs", "--output", "name")
        (name,) = re.findall(rf"^job\.batch/({RELEASE}-{kind}-\w+)$", listed, re.M)
        return str(name)

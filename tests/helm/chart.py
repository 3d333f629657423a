"""Renders the chart with Helm, and reads what comes out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "infra/helm/pagewire"
HELM = Path(sys.executable).with_name("helm")
RELEASE = "town"
NAMESPACE = "web"
SECRETS = "/run/secrets/pagewire/"

Manifest = dict[str, Any]

# What must be given.
LEAST: Mapping[str, Any] = {
    "config": {"sites": {"town": {}}},
    "kafka": {"bootstrapServers": "kafka:9092"},
    "elasticsearch": {"url": "http://elasticsearch:9200"},
}
# Everything switched on.
ALL: Mapping[str, Any] = {
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "config": {"sites": {"town": {"connectors": {"blog": {"kind": "push", "secret": "${BLOG_SECRET}"}}}}},
    "siteSecrets": {"secret": "sites", "names": ["BLOG_SECRET"]},
    "settings": {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "tenant=town",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=production",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.05",
    },
    "modelSettings": {
        "PAGEWIRE_LLM_MODEL": "m",
        "PAGEWIRE_JUDGING_MODEL": "j",
        "PAGEWIRE_OPENAI_BASE_URL": "https://models.example/v1",
    },
    "kafka": {
        "bootstrapServers": "b1:9093,b2:9093,b3:9094",
        "topicPrefix": "town.",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
        "user": "pagewire",
        "ca": {"secret": "kafka-ca"},
        "certificate": {"secret": "kafka-user"},
    },
    "elasticsearch": {"url": "https://e1:9200,https://e2:9243", "user": "pagewire", "ca": {"secret": "elastic-ca"}},
    "secrets": {
        "PAGEWIRE_ELASTICSEARCH_API_KEY": {"secret": "elastic", "key": "api-key"},
        "PAGEWIRE_ELASTICSEARCH_PASSWORD": {"secret": "elastic", "key": "password"},
        "PAGEWIRE_KAFKA_CERTIFICATE_PASSWORD": {"secret": "kafka-user", "key": "key-password"},
        "PAGEWIRE_KAFKA_PASSWORD": {"secret": "kafka-user", "key": "password"},
        "PAGEWIRE_OPENAI_API_KEY": {"secret": "models", "key": "key"},
    },
    "externalSecret": {
        "enabled": True,
        "store": {"name": "vault"},
        "data": [{"secretKey": "admin-key", "remoteRef": {"key": "pagewire", "property": "admin-key"}}],
    },
    "nodeSelector": {"pool": "web"},
    "tolerations": [{"key": "web", "operator": "Exists"}],
    "priorityClassName": "web",
    "extraVolumes": [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights", "readOnly": True}}],
    "extraVolumeMounts": [{"name": "weights", "mountPath": "/weights", "readOnly": True}],
    "workers": {"embed": {"nodeSelector": {"pool": "gpu"}, "affinity": {"podAntiAffinity": {}}}},
    "gateway": {
        "forwardedAllowIps": "10.1.0.0/16",
        "autoscaling": {"enabled": True},
        "service": {"annotations": {"a": "b"}},
    },
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "www.town.example",
        "tlsSecret": "town-tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    },
    "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    "keda": {"enabled": True},
    "rebuild": {"sites": ["town"]},
    "backup": {"enabled": True, "storageClass": "fast", "restore": "pagewire-backup-29000000-x7k2p"},
}


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(HELM), *arguments, *(("--values", "-") if values is not None else ())],
        input=None if values is None else yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def rendered(values: Mapping[str, Any], *options: str) -> list[Manifest]:
    """What would be sent to the cluster."""
    done = helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *options, values=values)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def of_kind(manifests: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """By name, without the release's."""
    return {
        str(one["metadata"]["name"]).removeprefix(f"{RELEASE}-pagewire").removeprefix("-"): one
        for one in manifests
        if one["kind"] == kind
    }


def pods(manifests: Iterable[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Component and template of everything that runs."""
    for one in manifests:
        if one["kind"] in ("Deployment", "Job", "CronJob"):
            spec = one["spec"]["jobTemplate"]["spec"] if one["kind"] == "CronJob" else one["spec"]
            template = spec["template"]
            yield template["metadata"]["labels"]["app.kubernetes.io/component"], template


def container(template: Manifest) -> Manifest:
    (only,) = template["spec"]["containers"]
    found: Manifest = only
    return found


def environment(template: Manifest) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container(template)["env"] if "value" in one}


def files(template: Manifest) -> dict[str, tuple[str, str]]:
    """Of /run/secrets/pagewire: path -> Secret and key."""
    (volume,) = [one for one in template["spec"]["volumes"] if one["name"] == "secrets"]
    return {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }

"""The chart in a real cluster: asked, upgraded, rebuilt, lost and restored, refused what it must not reach."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.acceptance.system import eventually
from tests.elsewhere import Elsewhere, elsewhere_at
from tests.engine_fixture import running_engine
from tests.helm.chart import ROOT
from tests.kubernetes.cluster import ADMIN_KEY, GATEWAY, Cluster
from tests.secure_kafka import PASSWORD

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800)]

VISITORS = (ROOT / "tests/kubernetes/visitors.py").read_text(encoding="utf-8")
REACHES = """
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
try:
    socket.create_connection((host, int(port)), timeout=5).close()
    print("yes")
except OSError:
    print("no")
"""


@contextmanager
def pod(cluster: Cluster, *command: str) -> Iterator[str]:
    """A pod that is no part of the release; its name."""
    name = f"other-{uuid4().hex[:8]}"
    # With processor time of its own: where new pods start beside it, it would measure its own waiting.
    own = {"name": "other", "image": cluster.image, "command": command, "resources": {"requests": {"cpu": "200m"}}}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    made["spec"] = {"containers": [own | {"imagePullPolicy": "IfNotPresent"}], "restartPolicy": "Never"}
    cluster.kubectl("apply", "--filename", "-", given=json.dumps(made))
    try:
        cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
        yield name
    finally:
        cluster.kubectl("delete", "pod", name, "--grace-period", "1")


def assert_answers(cluster: Cluster) -> None:
    answer = json.loads(cluster.pagewire("ask", "demo", "What does a library card cost?", "--lang", "en", "--json"))
    assert "library" in {one["page_id"] for one in answer["sources"] if one["cited"]}, answer


def test_a_question_is_answered_with_the_rights_that_are_listed(cluster: Cluster, elsewhere: Elsewhere) -> None:
    assert_answers(cluster)
    assert elsewhere.elastic.refused == []


def test_visitors_do_not_notice_an_upgrade(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = cluster.pods()
    url = f"http://{cluster.address()}:8000/v1/sites/demo/chat"
    with pod(cluster, "python", "-c", VISITORS, url, ADMIN_KEY) as visitors:
        cluster.install(podAnnotations={"rolled": uuid4().hex})
        cluster.kubectl("exec", visitors, "--", "touch", "/tmp/over")
        cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{visitors}", "--timeout=180s")
        said = json.loads(cluster.kubectl("logs", visitors))
    with capsys.disabled():
        print(f"\nupgrade: {said['asked']} questions asked, an answer took at most {said['longest']:.1f} s")
    assert said["wrong"] == []
    assert not before & cluster.pods()


def test_an_upgrade_that_cannot_work_changes_no_pod(cluster: Cluster) -> None:
    before = cluster.pods()
    try:
        cluster.kubectl("patch", "secret", "pagewire", "--patch", '{"stringData": {"kafka-password": "mistyped"}}')
        with pytest.raises(AssertionError, match="pre-upgrade hooks failed"):
            cluster.install(timeout="30s", podAnnotations={"rolled": uuid4().hex})
        assert "PAGEWIRE_KAFKA_PASSWORD" in cluster.kubectl("logs", "job/pagewire-topics")
        assert before <= cluster.pods()
        assert_answers(cluster)
    finally:
        patch = {"stringData": {"kafka-password": PASSWORD}}
        cluster.kubectl("patch", "secret", "pagewire", "--patch", json.dumps(patch))
        cluster.install()


def test_workers_rebuild_an_index(cluster: Cluster) -> None:
    cluster.install(rebuild={"sites": ["demo"], "from": "changes", "by": "workers"})
    assert "\nlive; back with `pagewire index rollback demo`" in cluster.ended(cluster.job("rebuild"))
    cluster.pagewire("audit", "demo")  # exit code 0: clean
    cluster.install()
    assert_answers(cluster)


def test_everything_is_lost_and_comes_back(
    cluster: Cluster, elsewhere: Elsewhere, host: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster.install(backup={"enabled": True, "size": "1Gi"})
    pages = cluster.pages()
    assert pages
    job = f"now-{uuid4().hex[:8]}"
    cluster.kubectl("create", "job", "--from=cronjob/pagewire-backup", job)
    cluster.ended(job)
    selector = f"batch.kubernetes.io/job-name={job}"
    made = cluster.kubectl("get", "pods", "--selector", selector, "--output", "jsonpath={.items[0].metadata.name}")
    with running_engine() as engine, elsewhere_at(host, engine, tmp_path_factory.mktemp("new")) as others:
        cluster.helm("uninstall", "pagewire", "--wait")
        try:
            cluster.use(others)
            cluster.install(backup={"enabled": True, "size": "1Gi", "restore": made})
            cluster.ended(cluster.job("restore"))
            eventually(lambda: cluster.pages() == pages, timeout=600, every=5)
            cluster.pagewire("audit", "demo")
            assert_answers(cluster)
        finally:
            cluster.use(elsewhere)
            cluster.install()


def test_pods_reach_only_what_they_must(cluster: Cluster, elsewhere: Elsewhere, host: str) -> None:
    with socket.create_server((host, 0)) as other, pod(cluster, "sleep", "600") as stranger:
        somewhere = f"{host}:{other.getsockname()[1]}"
        assert cluster.python(stranger, REACHES, somewhere) == "yes\n"
        for component in ("deployment/pagewire-index", "deployment/pagewire-answer", GATEWAY):
            assert cluster.python(component, REACHES, somewhere) == "no\n", "does the network know NetworkPolicies?"
            assert cluster.python(component, REACHES, elsewhere.kafka.login) == "yes\n"
        gateway = f"{cluster.address()}:8000"
        assert cluster.python(stranger, REACHES, gateway) == "yes\n"
        assert cluster.python("deployment/pagewire-index", REACHES, gateway) == "no\n"

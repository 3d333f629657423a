"""The alerts, fired by Prometheus' own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.promtool

ROOT = Path(__file__).parents[2]
RULES = ROOT / "infra/prometheus/alerts.yml"


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_its_files() -> None:
    promtool("check", "config", str(ROOT / "infra/prometheus/prometheus.yml"))


@pytest.mark.parametrize("file", ["alerts.yml", "drift.yml"])
def test_every_alert_fires_when_it_should_and_only_then(tmp_path: Path, file: str) -> None:
    cases = (Path(__file__).parent / file).read_text(encoding="utf-8")
    # Without what is said to people: that may be worded as it likes.
    rules = tmp_path / "rules.yml"
    lines = RULES.read_text(encoding="utf-8").splitlines(keepends=True)
    rules.write_text("".join(ln for ln in lines if not ln.strip().startswith(("annotations:", "summary:", "runbook:"))))
    told = tmp_path / "cases.yml"
    told.write_text(cases.replace("RULES", str(rules)), encoding="utf-8")
    promtool("test", "rules", str(told))

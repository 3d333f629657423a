"""docs/reference/metrics.md: what is counted, from the counters themselves."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from prometheus_client.metrics import MetricWrapperBase

from gateway.edge import gauges
from gateway.edge import metrics as edge
from pipelines.runtime import metrics as worker
from pipelines.runtime.stage import STAGES

INTRODUCTION = """# Metrics

In Prometheus' text format, without a key, at `/metrics` of the port that `metrics_port` names. Without that setting a
worker serves none, and a gateway does at its public port: keep them from visitors then
([how](../howto/deploy.md#a-reverse-proxy-with-tls)).
Who asks for OpenMetrics, as Prometheus does, gets [traces as exemplars](../howto/traces.md#from-a-figure-to-its-trace)
where these are switched on. `docker-compose.yml` brings Prometheus and a Grafana dashboard with them. Beside these
there are the client's own `process_*` and `python_*`.

| label | values |
| --- | --- |
| `stage` | {stages} |
| `lane` | `save` or `bulk`; empty for stages with one lane for all |
| `became` | what the visitor got: `answered`, `page`, `refused`, `courtesy`, `failed` |
| `rating` | `up`, `down` |
| `code` | why, as in [codes.md](codes.md); of a retry without a code, the Python exception's name |
| `outcome` | `ok`; `dead`, a dead letter; `parked`, one that waits for its cause; of judged answers as told there |
| `service` | `kafka`, `elasticsearch` |
| `site` | as in pagewire.yaml |
| `quantile` | `0.5`, `0.95` |
| `method`, `route`, `status` | of the request; the route as in [http.md](http.md), `none` where there is no such path |
"""
PARTS = (
    ("Of a worker", worker, "What this process has done since it started."),
    (
        "Of the whole pipeline, at a gateway",
        gauges,
        "Asked of Kafka and Elasticsearch when `/metrics` is read, at most every five seconds; what cannot be asked is "
        "left out, so an old figure never stands for a new one. Each gateway says the same.",
    ),
    ("Of a gateway", edge, "What this process has done since it started."),
)


def page() -> str:
    lines = [INTRODUCTION.format(stages=", ".join(f"`{name}`" for name in STAGES))]
    for title, module, about in PARTS:
        lines += [f"## {title}\n\n{about}\n", "| name | kind | labels | |", "| --- | --- | --- | --- |"]
        lines += [*_rows(module), ""]
    return "\n".join(lines)


def _rows(module: ModuleType) -> Iterator[str]:
    for metric in vars(module).values():
        if isinstance(metric, MetricWrapperBase):
            [told] = metric.describe()
            name = told.name + ("_total" if told.type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in metric._labelnames)
            yield f"| `{name}` | {told.type} | {labels} | {told.documentation} |"

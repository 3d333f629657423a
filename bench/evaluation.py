"""What an evaluation costs: `pagewire evaluate` over many cases without a model, and who of all processes computes.

    XQuAD ─▶ pages, searchable; questions as a dataset ─▶ pagewire evaluate ─▶ time, CPU of each part for a case
                                                     └─▶ a few cases again, killed half-way, begun again ─▶ same report?

Time is the machine's, and of use on an idle one alone; CPU hangs less on what else it does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import psutil
from rich.progress import track

from bench.report import report
from bench.servers import start
from bench.system import system
from bench.xquad import Corpus, load
from cli.up import System
from infra import engine
from pipelines.evaluate.run import Run

SITE = "xquad"
AGAIN = 40  # cases of the run that is killed
EVERY = 0.1  # seconds between two looks at a command's CPU
COLUMNS = ("part", "CPU s", "CPU ms for a case", "of all")

# Of a run what hangs on the clock.
TIMES = ("at", "ms", "timings_ms")


@dataclass(frozen=True)
class Ran:
    """A run of the command."""

    seconds: float
    cpu: float  # seconds, of the command alone
    file: Path


def main(data: Path, lang: str, count: int, keep: Path | None) -> None:
    """Ask so many of XQuAD's questions; print what each part of the system computed for it."""
    asyncio.run(_run(load(data, lang), count, keep))


async def _run(corpus: Corpus, count: int, keep: Path | None) -> None:
    async with system([SITE], [corpus.lang]) as (started, client):
        await put_in(client, corpus)
        home = started.settings.home
        every = dataset(home / "all.ndjson", corpus, count)
        few = dataset(home / "few.ndjson", corpus, min(count, AGAIN))
        await evaluated(started, few, home / "warm.ndjson")
        before = await computed(started)
        ran = await evaluated(started, every, home / "run.ndjson")
        after = await computed(started)
        await killed(started, few, home / "killed.ndjson")
        await evaluated(started, few, home / "killed.ndjson")
        same = seen(home / "warm.ndjson") == seen(home / "killed.ndjson")
        if keep is not None:
            write(keep, seen(ran.file))
    cases = min(count, len(corpus.questions))
    spent = {name: after[name] - before[name] for name in before} | {"the command": ran.cpu}
    total = sum(spent.values())
    lines = [(name, seconds, round(seconds / cases * 1000, 1), seconds / total) for name, seconds in spent.items()]
    lines.append(("all", total, round(total / cases * 1000, 1), 1.0))
    about = (
        f"{cases:,} cases in {ran.seconds:.0f} s; killed half-way and begun again: {'the same' if same else 'OTHER'}"
    )
    report("evaluate", about, COLUMNS, lines, seconds=ran.seconds, cases=cases, cpu_s_a_case=total / cases, same=same)


async def put_in(client: httpx.AsyncClient, corpus: Corpus) -> None:
    """One page after the other, each until it is searchable: as saves, which a busy machine does not keep waiting."""
    for page in track(corpus.pages, description=f"indexing {SITE}"):
        answer = await client.put(
            f"/sites/{SITE}/pages/{page.id}?wait=searchable&timeout=100",
            content=page.model_dump_json(exclude_none=True),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 200, answer.text


def dataset(file: Path, corpus: Corpus, count: int) -> Path:
    """The first of the corpus's questions, with their pages and answers, as a dataset."""
    cases = [
        {
            "id": f"q{n:04}",
            "question": one.question,
            "lang": corpus.lang,
            "pages": [one.page_id],
            "answers": [one.answer],
        }
        for n, one in enumerate(corpus.questions[:count])
    ]
    file.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8")
    return file


def seen(run: Path) -> Mapping[str, Any]:
    """What came of each case, without what hangs on the clock: from which everything in a report follows."""
    found = Run.read(run).observed
    return {case: one.model_dump(mode="json", exclude=set(TIMES)) for case, one in found.items()}


def write(file: Path, found: Mapping[str, Any]) -> None:
    """For a later run to be compared with."""
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


async def evaluated(started: System, cases: Path, run: Path) -> Ran:
    """Run the command to its end. Raises: RuntimeError: it failed."""
    began = perf_counter()
    process = await start(*_arguments(started, cases, run))
    talking = asyncio.ensure_future(process.communicate())
    cpu = 0.0
    while not talking.done():
        with suppress(psutil.Error):
            cpu = max(cpu, _cpu(psutil.Process(process.pid)))
        await asyncio.wait((talking,), timeout=EVERY)
    _, said = await talking
    if process.returncode:
        raise RuntimeError(f"pagewire evaluate: exit code {process.returncode}: {said.decode()[-2000:]}")
    return Ran(perf_counter() - began, cpu, run)


async def killed(started: System, cases: Path, run: Path) -> None:
    """Run the command until it has half of its cases, and kill it."""
    process = await start(*_arguments(started, cases, run))
    half = _lines(cases) // 2
    while process.returncode is None and _lines(run) <= half:
        await asyncio.wait((asyncio.ensure_future(process.wait()),), timeout=EVERY)
    with suppress(ProcessLookupError):
        process.kill()
    await process.communicate()


def _lines(file: Path) -> int:
    return len(file.read_bytes().splitlines()) if file.exists() else 0


def _arguments(started: System, cases: Path, run: Path) -> tuple[str, ...]:
    return ("evaluate", SITE, "--dataset", str(cases), "--url", started.url, "--run", str(run), "--json")


async def computed(started: System) -> dict[str, float]:
    """Seconds of CPU of each part of the system so far, with its children."""
    found = dict(_children(started))
    if started.engine is not None:
        status = await engine.status(started.engine.settings)
        for server in (status.kafka, status.elasticsearch):
            found[server.name] = _cpu(psutil.Process(server.pid))
    return found


def _children(started: System) -> Iterator[tuple[str, float]]:
    for child in started.children:
        process = psutil.Process(child.pid)
        yield child.name, sum(map(_cpu, (process, *process.children(recursive=True))))


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

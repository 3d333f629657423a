"""One of each message and stored record, with a value in every field that there is: what releases are compared by.

A new field belongs in here with a value of its own (tests/contract/test_releases.py says so when it is forgotten).
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from schemas.answer import (
    Accepted,
    Answered,
    AnswerEvent,
    Citation,
    Done,
    Doubted,
    Failed,
    PromptMessage,
    QuestionMeaning,
    QuestionRephrased,
    Restart,
    SourcesFound,
    Step,
    Token,
    TrialFindings,
    Usage,
    WholeTable,
)
from schemas.base import Message, Wire
from schemas.compact import compact
from schemas.conversation import CitedSource, Conversation, ConversationSummary, Feedback, StoredTurn
from schemas.example import ExampleSource, WorkedExample
from schemas.head import Head, LogPositions, PendingGroups
from schemas.ingest import (
    Chunk,
    ChunkCounts,
    Chunker,
    ChunkUnit,
    EmbeddedChunk,
    Failure,
    PageChunks,
    PageEmbeddings,
    Reading,
    ReceiptEvent,
    WordCounts,
)
from schemas.outcome import (
    DoubtedSentence,
    Forgotten,
    Outcome,
    OutcomeEvent,
    OutcomeSource,
    Rated,
    SecondVerdict,
    ToolRun,
    Verdict,
    VerdictEvent,
)
from schemas.page import (
    Attachment,
    AttachmentPlace,
    DayHours,
    OpeningHours,
    PageChange,
    PageDocument,
    PageEvent,
    PageMeta,
    PageMetadata,
    PageProduct,
    PageQuestion,
)
from schemas.query import (
    Corrected,
    Earlier,
    Evidence,
    FoundPage,
    Gate,
    LogPlace,
    ModelCall,
    Part,
    PendingCall,
    Question,
    QuestionVector,
    Rephrased,
    Retrieved,
    Signs,
    Source,
    SourceTable,
    Stop,
    Sure,
    Trial,
    Tuned,
    Turn,
)
from schemas.rebuild import KeptGateReport, Measure, PageBuilt, PageOrder, Rank, Rebuild, RebuildFailure
from schemas.worker import Counts, PauseNote
from tests.making import NOON, change

REQUEST, CONVERSATION = "request-0001", "conversation-1"
# What a class was called in a release that is kept.
FORMER_NAMES = {"schemas.example:WorkedExample": "schemas.example:RephraseExample"}

_DELETED = change(6, "delete", offset=7)
_STAMP = {"page_kind": "FAQPage", "published_at": NOON, "changed_at": NOON}
_META = PageMeta(title="Fees", url="/fees", groups=("staff",), labels={"kind": ("form", "notice")}, **_STAMP)
_METADATA = PageMetadata(
    **_STAMP,
    authors=("Ada",),
    breadcrumbs=("Home", "Fees"),
    faq=(PageQuestion(question="Is it free?", answer="Yes."),),
    events=(PageEvent(name="Meeting", start="2026-06-11T19:30", end="2026-06-11", place="Town hall"),),
    products=(PageProduct(name="Card", price=Decimal("12.50"), currency="EUR", availability="in-stock"),),
    opening=(OpeningHours(name="Desk", url="/desk", hours=(DayHours(day=0, opens="09:00", closes="17:00"),)),),
)
_READING = Reading(reader="1", words=WordCounts(visible=12, indexed=9, left_out={"menu": 3, "hidden": 4}))
_PLACE = AttachmentPlace(file=1, title="Fees as PDF", url="/fees.pdf")
_UNIT = ChunkUnit(
    start=3, text="Free.", kind="row", headings=("Fees",), intro="What it costs:", header="| Who | Fee |", block=1
)
_CALL = ModelCall(
    step="answer",
    model="small",
    messages=(PromptMessage(role="user", text="When?"),),
    reply="At 9 [1].",
    failed="model-cut",
    not_kept=7,
)
_CALL_THAT_WAITS = PendingCall(tool="average", arguments='{"grades": [5]}', missing=("credits",))
_TURN = Turn(question="When is it open?", answer="Daily.", lang="en", pages=("town:en:pool",), pending=_CALL_THAT_WAITS)
_MEASURE = Measure(
    name="hit@1", live=0.9, candidate=0.8, difference=-0.1, low=-0.2, high=-0.01, state="worse", needed=0
)
_GENERATION = Rebuild(
    site="town",
    generation=2,
    index="pagewire-town-2",
    source="chunks",
    follows="chunks",
    embedder="lite",
    model="fake-4",
    dims=4,
    chunker="content-1000-20",
    state="verified",
    offsets={0: 17},
    done=17,
    total=18,
    pages=5,
    chunks=9,
    embedded=3,
    remade=1,
    failures=1,
    failed=(RebuildFailure(page_key="town:en:fees", reason="unreadable"),),
    seconds=1.5,
    created_at=NOON,
    updated_at=NOON,
    promoted_at=NOON,
)
_QUESTION = Question(
    request_id=REQUEST,
    conversation_id=CONVERSATION,
    site="town",
    lang="en",
    guessed=True,
    question="And on Sundays?",
    history=(_TURN,),
    replaced="Daily.",
    groups=("staff",),
    labels={"kind": ("form",)},
    logged_as="c1",
    ranked=5,
    importing=True,
    via="mcp",
    client="assistant",
    asker="9f86d081",
    trial=Trial(
        strategy="plain",
        model="large",
        temperature=0.5,
        examples=2,
        shot_choice="fixed",
        short=True,
        index="pagewire-town-000002",
        prompt="id: answer",
        prompt_name="rephrase",
        hits=5,
        order=1,
        think=True,
        rerank=False,
        flow="original",
        retriever="vectors",
        short_floor=0.5,
        content_floor=0.25,
        short_hits=2,
        neighbours=1,
        short_question_words=4,
        context_chars=4_000,
        rephrase="expand",
        sentence_check="drop",
        courtesies=False,
        gate=False,
        gate_threshold=0.5,
        sure_threshold=0.25,
    ),
    tuned=Tuned(
        strategy="plain",
        model="large",
        temperature=0.5,
        examples=2,
        hits=5,
        think=True,
        rerank=False,
        flow="original",
        retriever="vectors",
        short_floor=0.5,
        content_floor=0.25,
        short_hits=2,
        neighbours=1,
        short_question_words=4,
        context_chars=4_000,
        rephrase="expand",
        sentence_check="drop",
        courtesies=False,
        gate=False,
        gate_threshold=0.5,
        sure_threshold=0.25,
    ),
    begins=LogPlace(partition=1, offset=7),
    asked_at=NOON,
    deadline=NOON,
)
_SOURCE = Source(
    n=1,
    page_id="pool",
    lang="en",
    title="Pool",
    url="/pool",
    field="content",
    ord=2,
    heading="Description: About the pool.",
    text="From 9.",
    score=0.5,
    cosine=0.75,
    revision=5,
    cited=True,
    kind="tool",
    **_STAMP,
)
_EVIDENCE = Evidence(
    n=1,
    start=4,
    text="From 9.",
    kind="row",
    headings=("Pool",),
    intro="Open:",
    header="| Day | From |",
    block=2,
    of=7,
    score=0.5,
)
_SURE = Sure(of="unit", unit=0.9, page=0.95, signals={"gap": 0.5})
_GATE = Gate(distance=0.1, entropy=0.2, subject=0.3, by_figures=1, score=0.8, threshold=0.5, signals={"best": 0.5})
_EVENTS = (
    Accepted(request_id=REQUEST, conversation_id=CONVERSATION),
    QuestionRephrased(question="Is the pool open on Sundays?", mode="semantic"),
    SourcesFound(grade=1, sources=(_SOURCE,)),
    Token(text="From 9."),
    Citation(n=1, start=0, end=7, quote="From 9."),
    Answered(
        text="From 9.",
        citations=(Citation(n=1, start=0, end=7),),
        sources=(_SOURCE,),
        extractive=True,
        certainty="said",
        generated_by="quotation",
        handover=True,
        stopped=True,
        cut=True,
        left_out=1,
        doubted=(Doubted(start=0, end=7, kind="figure", said="9"),),
        narrower=(QuestionMeaning(label="Pool", question="Which pool?"),),
        tables=(WholeTable(n=1, start=0, text="| Day | From |"),),
        found=(FoundPage(page_id="pool", lang="en"),),
        pending=_CALL_THAT_WAITS,
        strategy="tools",
        trace=(Step(kind="model", asked="?", said="!", ms=12.5),),
        usage=Usage(model="small", prompt_tokens=10, completion_tokens=3),
        timings_ms={"answer": 12.5},
        trial=TrialFindings(
            became="answered",
            gate=_GATE,
            sure=_SURE,
            prompt=(PromptMessage(role="user", text="When?"),),
            corrections=("3f9a1c20b7de",),
            index="pagewire-town-000002",
            found=(FoundPage(page_id="pool", lang="en"),),
        ),
    ),
    Done(),
    Failed(code="timeout", message="It took too long."),
    Restart(attempt=2),
)

_ASKED_VECTOR = QuestionVector.of("fake-4", np.array([1, 0, 0, 0], dtype=np.float32))

# What travels: a name that lasts, and the message.
_OUTCOMES = (
    Outcome(
        asked_at=NOON,
        asked_in="de",
        lang="en",
        question="And on Sundays?",
        rephrased="Is the pool open on Sundays?",
        became="answered",
        mode="semantic",
        courtesy="thanks",
        grade=1,
        gate=_GATE,
        sure=_SURE,
        hits=(
            OutcomeSource(
                page_id="pool",
                lang="en",
                title="Pool",
                url="/pool",
                field="content",
                ord=2,
                score=0.9,
                cosine=0.8,
                cited=True,
            ),
        ),
        restricted=True,
        via="mcp",
        client="assistant",
        asker="9f86d081",
        corrections=("3f9a1c20b7de",),
        corrected="answer",
        tools=("average",),
        tool_runs=(ToolRun(call="average({})", said="[2] 4.67", ms=1.5),),
        strategy="direct",
        extractive=True,
        generated_by="model",
        handover=True,
        model="small",
        prompt_tokens=100,
        completion_tokens=20,
        timings_ms={"retrieve": 2.5},
        first_token_ms=80.5,
        stopped=True,
        cut=True,
        left_out=1,
        failed="timeout",
        answer="At 9.",
        calls=(_CALL,),
        doubted=(DoubtedSentence(sentence="At 8.", kind="figure", said="8", cited=(1,), marked=True),),
        vector=_ASKED_VECTOR,
    ),
    Rated(feedback=Feedback(rating="down", comment="Wrong day.", at=NOON)),
    Forgotten(at=NOON, requests=(REQUEST,)),
)
_VERDICT = Verdict(
    judged_at=NOON,
    judge="small",
    prompts="a1+b2",
    faithfulness=0.5,
    context_relevancy=1.0,
    unjudged="judge-unreadable",
    again=SecondVerdict(faithfulness=0.25, context_relevancy=1.0),
)
MESSAGES: dict[str, Message] = {
    "save": PageChange(
        op="upsert",
        site="town",
        lang="en",
        page_id="fees",
        revision=5,
        accepted_at=NOON,
        source="push",
        page=PageDocument(
            id="fees",
            lang="en",
            url="/fees",
            name="fees",
            title="Fees",
            description="What it costs",
            keywords=("price",),
            content="<p>Free.</p>",
            left_out={"menu": 3},
            revision=5,
            changed_at=NOON,
            metadata=_METADATA,
            labels={"kind": ("form", "notice"), "department": ("tax",)},
            attachments=(
                Attachment(path="a.pdf", media_type="application/pdf", title="Fees as PDF", link="/fees.pdf"),
                Attachment(url="https://town.example/b.pdf"),
                Attachment(data_base64="aGVsbG8=", media_type="text/plain"),
            ),
            groups=("staff",),
        ),
    ),
    "delete": PageChange(
        op="delete", site="town", lang="en", page_id="fees", revision=6, accepted_at=NOON, source="import"
    ),
    "chunks": PageChunks(
        change=change(5),
        meta=_META,
        chunker=Chunker(mode="content", size=1000, overlap=0.2, titled=True),
        chunks=(Chunk(field="content", ord=1, text="Free.", place=_PLACE),),
        notes=("a note",),
        reading=_READING,
    ),
    "chunks of a delete": PageChunks(
        change=_DELETED, meta=None, chunker=Chunker(mode="content", size=1000, overlap=0.2)
    ),
    "embeddings": PageEmbeddings(
        change=change(5, offset=3),
        meta=_META,
        chunker="content-1000-20",
        embedder="lite",
        model="fake-4",
        dims=4,
        part=1,
        parts=2,
        counts={"content": 2},
        digest="0123.4567",
        embedded=1,
        reused=1,
        notes=("a note",),
        reading=_READING,
        chunks=(
            EmbeddedChunk(
                field="content",
                ord=1,
                text="Free.",
                place=_PLACE,
                embed_hash="hash",
                vector=np.array([1, 0, 0, 0], dtype=np.float32),
                units=(_UNIT,),
                unit_vectors=compact([[1, 0, 0, 0]])[0],
                sparse={"6": 0.25, "1045": 0.125},
            ),
        ),
        chunks_offset=9,
        chunks_in=1,
    ),
    "embeddings of a plain page": PageEmbeddings(
        change=change(5, offset=3),
        meta=PageMeta(title="Fees", url="/fees"),
        chunker="content-1000-20",
        embedder="lite",
        model="fake-4",
        dims=4,
        part=0,
        parts=1,
        counts={"title": 1},
        digest="0123.4567",
        embedded=1,
        chunks=(
            EmbeddedChunk(
                field="title", ord=0, text="Fees", embed_hash="hash", vector=np.array([0, 1, 0, 0], dtype=np.float32)
            ),
        ),
        chunks_offset=9,
    ),
    "part that a newer revision lacks": PageEmbeddings(
        change=change(5, offset=3),
        meta=None,
        chunker="content-1000-20",
        embedder="lite",
        model="fake-4",
        dims=4,
        part=2,
        parts=2,
        superseded=True,
    ),
    "delete ahead of embeddings": PageEmbeddings(
        change=_DELETED,
        meta=None,
        chunker="content-1000-20",
        embedder="lite",
        model="fake-4",
        dims=4,
        part=0,
        parts=1,
        ahead=True,
    ),
    "receipt": ReceiptEvent(
        change=change(5, offset=3),
        state="searchable",
        at=NOON,
        chunks=ChunkCounts(total=3, embedded=1, reused=2, removed=1),
        notes=("a note",),
    ),
    "receipt of a failure": ReceiptEvent(
        change=change(5, offset=3), state="failed", at=NOON, error=Failure(stage="chunk", reason="unreadable")
    ),
    "question": _QUESTION,
    "first question": _QUESTION.model_copy(update={"history": (), "replaced": "", "groups": ()}),
    "rephrased": Rephrased(
        request=_QUESTION,
        question="Is the pool open on Sundays?",
        earlier=Earlier(
            question="When is it open?",
            pages=("town:en:pool",),
            signs=Signs(leans=True, opens=True, refers=True, named=1),
        ),
        mode="semantic",
        calls=(_CALL,),
        usage=Usage(prompt_tokens=11, completion_tokens=7),
        timings_ms={"rephrase": 1.5},
    ),
    "rephrased courtesy": Rephrased(
        request=_QUESTION, question="Thanks", mode="courtesy", courtesy="thanks", person=True
    ),
    "retrieved": Retrieved(
        request=_QUESTION,
        question="Is the pool open on Sundays?",
        mode="keyword",
        grade=1,
        sources=(_SOURCE,),
        gate=_GATE,
        evidence=(_EVIDENCE,),
        sure=_SURE,
        parts=(Part(question="on Sundays", evidence=(_EVIDENCE,), sure=_SURE),),
        tables=(SourceTable(sources=(1,), block=2, text="| Day | From |"),),
        vector=_ASKED_VECTOR,
        corrected=Corrected(ids=("3f9a1c20b7de",), kind="answer", text="From 9."),
        index="pagewire-town-000002",
        found=(FoundPage(page_id="pool", lang="en"),),
        calls=(_CALL,),
        usage=Usage(prompt_tokens=11, completion_tokens=7),
        timings_ms={"retrieve": 2.5},
    ),
    "retrieved for a courtesy": Retrieved(
        request=_QUESTION, question="Thanks", mode="courtesy", courtesy="thanks", person=True, grade=0, sources=()
    ),
    **{
        f"event {event.type}": AnswerEvent(request_id=REQUEST, site="town", attempt=2, seq=seq, event=event)
        for seq, event in enumerate(_EVENTS)
    },
    **{
        f"outcome event {event.type}": OutcomeEvent(request_id=REQUEST, site="town", conversation="c1", event=event)
        for event in _OUTCOMES
    },
    "verdict": VerdictEvent(site="town", request_id=REQUEST, conversation="c1", asked_at=NOON, verdict=_VERDICT),
    "page order": PageOrder(
        run="0f" * 16,
        index="pagewire-town-000002",
        partition=1,
        offset=7,
        change=PageChange(
            op="upsert",
            site="town",
            lang="en",
            page_id="fees",
            revision=5,
            accepted_at=NOON,
            source="push",
            page=PageDocument(id="fees", lang="en", content="<p>Free.</p>"),
        ),
    ),
    "page built": PageBuilt(
        run="0f" * 16,
        index="pagewire-town-000002",
        page_key="town:en:fees",
        partition=1,
        offset=7,
        outcome="failed",
        pages=1,
        chunks=3,
        embedded=2,
        reason="the mapping refuses it",
    ),
    "stop": Stop(request_id=REQUEST, site="town"),
    "counts": Counts(process="0f" * 16, period=20_000, seconds=86_400, counts={"questions town": 12}),
    "pause": PauseNote(
        worker="host:1", stage="index", lane="bulk", code="denied", reason="401", since=NOON, at=NOON, over=True
    ),
}

# What is kept in Elasticsearch.
_ASKED = StoredTurn(
    request_id=REQUEST,
    question="When is it open?",
    lang="en",
    asked_at=NOON,
    state="answered",
    rephrased="When is the pool open?",
    grade=1,
    answer="From 9.",
    citations=(Citation(n=1, start=0, end=7, quote="From 9."),),
    sources=(
        CitedSource(
            n=1, page_id="pool", lang="en", title="Pool", url="/pool", field="content", ord=2, kind="tool", **_STAMP
        ),
    ),
    extractive=True,
    certainty="place",
    generated_by="quotation",
    doubted=(Doubted(start=0, end=7, kind="figure", said="9"),),
    handover=True,
    narrower=(QuestionMeaning(label="Pool", question="When is it open? – Pool"),),
    tables=(WholeTable(n=1, start=0, text="| Day |"),),
    error="timeout",
    feedback=Feedback(rating="up", comment="Thanks", at=NOON),
    deadline=NOON,
    guessed=True,
    position="3.14.1",
    withheld=True,
    groups=("staff",),
    labels={"kind": ("form",)},
    removed=True,
    pending=_CALL_THAT_WAITS,
    replaces="request-0000",
)
STORED: dict[str, Wire] = {
    "head": Head(
        change=change(5, offset=3),
        state="live",
        counts={"content": 2},
        parts=2,
        model="fake-4",
        chunker="content-1000-20",
        cost=ChunkCounts(total=2, embedded=1, reused=1, removed=1),
        reading=_READING,
        labels={"kind": ("form",)},
        origin=LogPositions(changes=3, chunks=4, embeddings=5, changes_in=0, chunks_in=1, embeddings_in=2),
        last_part=6,
        losers=LogPositions(changes=1, chunks=1, embeddings=1),
        settled_at=NOON,
        digest="0123.4567",
    ),
    "head of what goes ahead": Head(
        change=_DELETED,
        state="deleted",
        origin=LogPositions(changes=7),
        settled_at=NOON,
        ahead=True,
        narrowed=PendingGroups(revision=6, groups=("staff",)),
    ),
    "receipt as stored": ReceiptEvent(change=change(5, offset=3), state="searchable", at=NOON),
    "conversation": Conversation(
        conversation_id=CONVERSATION,
        site="town",
        owner="visitor",
        title="Pool",
        created_at=NOON,
        updated_at=NOON,
        turns=(_ASKED,),
    ),
    "line of a list of conversations": ConversationSummary(
        conversation_id=CONVERSATION, title="Pool", created_at=NOON, updated_at=NOON, turns=1
    ),
    "generation of an index": _GENERATION,
    "generation that the gate has judged": _GENERATION.model_copy(
        update={
            "shared": True,
            "gate": KeptGateReport(
                questions=99,
                margin=0.03,
                needed=0,
                measures=(_MEASURE,),
                worst=(Rank(question="What is it?", page="fees", live=1, candidate=None),),
                passed=False,
                against="pagewire-town-1",
                at=NOON,
            ),
        }
    ),
    "example of a rewriting": WorkedExample(
        id="example-1",
        site="town",
        lang="en",
        history=(_TURN,),
        question="And on Sundays?",
        output="Is the pool open on Sundays?",
        added_at=NOON,
    ),
    "example of an answer": WorkedExample(
        kind="answer",
        id="example-2",
        site="town",
        lang="en",
        question="When?",
        sources=(ExampleSource(title="Pool", text="From 9."),),
        output="From 9 [1].",
        declines=True,
        added_at=NOON,
    ),
}

"""What the gateway needs from the packages below, in one object; the tests' fakes are subclasses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from adapters.elastic.page_view import ElasticPageView
from adapters.elastic.system_index import ElasticExamples
from gateway.rebuild_runs import RebuildRuns
from gateway.reconcile_runs import ReconcileRuns
from pipelines.conversations.ask import Asker
from pipelines.conversations.conversations import ConversationStore
from pipelines.conversations.handovers import HandoverStore
from pipelines.conversations.suggestions import Suggestions
from pipelines.conversations.titles import Titles
from pipelines.evaluate.publication import RunStore
from pipelines.ingest.accept import Intake
from pipelines.ingest.receipts import ReceiptReader
from pipelines.operate.access_keys import AccessKeys
from pipelines.operate.audit.repair import Auditor, AuditRuns
from pipelines.operate.audit_log import AuditLog
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.operate.dead_letters.letters import Letters
from pipelines.operate.site_runs import EvaluationRuns
from pipelines.operate.states import ConnectorRuns, LastUses
from pipelines.operate.status import StatusReader
from pipelines.query.examples import ExampleComparison
from pipelines.query.live.live_texts import TextStore
from pipelines.query.log.correction_trials import CorrectionTrials
from pipelines.query.log.frequent import FrequentQuestions
from pipelines.query.log.gap_reports import GapReports
from pipelines.query.log.handler import Notes
from pipelines.query.log.ports import QuestionReader
from pipelines.query.search.search import Searcher
from pipelines.query.search.typeahead import TypeaheadIndex
from pipelines.runtime.counts import SharedCounts
from schemas.topics import Topic


@dataclass(frozen=True)
class Ports:
    """All of them, for `app.create_app`."""

    intake: Intake
    receipts: ReceiptReader
    answers: Asker
    conversations: ConversationStore
    handovers: HandoverStore
    suggestions: Suggestions
    search: Searcher
    status: StatusReader
    letters: Letters
    audits: Auditor
    audit_runs: AuditRuns
    rebuilds: RebuildRuns
    reconciles: ReconcileRuns
    examples: ElasticExamples
    alike: ExampleComparison
    texts: TextStore
    correction_trials: CorrectionTrials
    keys: AccessKeys
    uses: LastUses
    runs: ConnectorRuns
    chat: ChatSwitches
    audit_log: AuditLog
    questions: QuestionReader
    indexed: ElasticPageView
    gaps: GapReports
    typeahead: TypeaheadIndex
    frequent: FrequentQuestions
    evaluations: RunStore
    evaluation_runs: EvaluationRuns
    notes: Notes
    now: Callable[[], datetime]  # the time that all gateways go by
    counts: Callable[[Topic, int], SharedCounts]  # shared by all gateways over a topic, by periods in seconds
    titles: Titles | None = None  # None: no model writes titles

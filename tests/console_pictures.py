"""Which picture of docs/pictures shows which screen of the console.

A new screen has to be added here (tests/tooling/docs/test_pictures.py says so), and to what takes the pictures
(tests/browser/test_pictures.py): a person who reads about it wants to see it.
"""

from __future__ import annotations

PICTURE_OF = {
    "/console/sign-in": "sign-in",
    "/console/": "overview",
    "/console/questions": "questions",
    "/console/questions/{request_id}": "question",
    "/console/gaps": "gaps",
    "/console/corrections": "corrections",
    "/console/corrections/new": "new-correction",
    "/console/corrections/{correction}": "correction",
    "/console/handovers": "handovers",
    "/console/evaluations": "evaluations",
    "/console/evaluations/new": "new-evaluation",
    "/console/evaluations/run": "evaluation-run",
    "/console/evaluations/compare": "evaluation-pair",
    "/console/evaluations/{run}": "evaluation",
    "/console/page": "page",
    "/console/playground": "playground",
    "/console/examples": "examples",
    "/console/examples/new": "new-example",
    "/console/texts": "texts",
    "/console/texts/{kind}/{name}": "text",
    "/console/indexes": "indexes",
    "/console/indexes/audit": "audit",
    "/console/sites": "sites",
    "/console/privacy": "privacy",
    "/console/dlq": "letters",
    "/console/dlq/{topic}/{partition}/{offset}": "letter",
    "/console/keys": "keys",
    "/console/keys/{id}": "key",
    "/console/audit-log": "audit-log",
}

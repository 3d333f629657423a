"""Cases out of a site's corrections: what an editor has put right stays right."""

from __future__ import annotations

from typing import Any

from pipelines.evaluate.dataset import Case, Dataset
from schemas.correction import CorrectionList

TAG = "corrected"


def corrected_cases(corrections: CorrectionList) -> Dataset:
    """A case for each question of each correction that is in force."""
    cases: dict[str, Case] = {}
    for one in corrections.corrections:  # the newest first: of the same question it counts
        said = one.correction
        if one.state != "in-force":
            continue
        for question in said.questions:
            told: dict[str, Any] = {"expect": "refuse" if said.kind == "refusal" else "answer"}
            if said.page is not None:
                told["pages"] = said.page.page_id
            if said.kind == "answer":
                told["answers"] = said.text
            case = Case.model_validate(
                {"question": question, "lang": said.lang, "site": corrections.site, "tags": TAG, **told}
            )
            cases.setdefault(case.id, case)
    return Dataset(f"{corrections.site}-corrections", tuple(cases.values()))

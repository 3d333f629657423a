"""Site privacy: what each site keeps of what its visitors say; the setting, or in its place what was changed since.

pagewire.yaml: log_questions, log_prompts, retention ──┐
versions that were made live (live_texts.py) ──────────┴─▶ PrivacyRules ─▶ masks.py: what is logged
                                                                        └▶ log/retention.py: what is deleted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from pydantic import ValidationError

from pipelines.runtime.settings import Site
from schemas.base import problems
from schemas.privacy import MAX_DAYS, PrivacyLoss, PrivacyRules
from schemas.text_version import TextVersion

log = structlog.get_logger(__name__)

PRIVACY = "rules"  # a site's privacy is one text
GRACE = timedelta(hours=1)  # so long after a change nothing is deleted that was kept before it: it can be undone


class SitePrivacy:
    """What is kept, as far as is known here. One per process."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._live: Mapping[str, PrivacyRules] = {}

    def of(self, site: str) -> PrivacyRules | None:
        """None: there is no such site."""
        if (live := self._live.get(site)) is not None:
            return live
        known = self._sites.get(site)
        return None if known is None else filed_rules(known)

    def take(self, live: Iterable[TextVersion]) -> None:
        """From now on these count, in place of those taken before."""
        taken = {}
        for version in live:
            if version.kind == "privacy" and version.text is not None:
                try:
                    filed = filed_rules(self._sites.get(version.site, Site()))
                    taken[version.site] = read_rules(version.text, filed)
                except ValidationError as err:
                    log.warning(
                        "what a site keeps cannot be read, and pagewire.yaml counts",
                        site=version.site,
                        version=version.version,
                        problems=problems(err),
                    )
        self._live = taken


def filed_rules(site: Site) -> PrivacyRules:
    kept = site.retention
    return PrivacyRules(
        log_questions=site.log_questions,
        log_prompts=site.log_prompts,
        conversations=min(kept.conversations, MAX_DAYS),
        outcomes=min(kept.outcomes, MAX_DAYS),
    )


def read_rules(text: str, filed: PrivacyRules) -> PrivacyRules:
    """The rules of a version.

    Args:
        filed: what pagewire.yaml says, where a release before the last has written the version.

    Raises:
        ValidationError.
    """
    rules = PrivacyRules.model_validate_json(text, extra="allow")
    return (
        rules
        if "log_prompts" in rules.model_fields_set
        else rules.model_copy(update={"log_prompts": filed.log_prompts})
    )


def written_rules(rules: PrivacyRules) -> str:
    return rules.model_dump_json()


def deleted_by(versions: Sequence[TextVersion], filed: PrivacyRules, now: datetime) -> PrivacyRules | None:
    """By which rules is deleted: of all that were in force within the last hour, the longest days.

    Args:
        versions: of the site's privacy, the newest first.

    Returns:
        None: one of them cannot be read here. Then nothing must be deleted: another release may know that it is kept.
    """
    counting = []
    for version in (one for one in versions if not one.candidate):
        try:
            counting.append(filed if version.text is None else read_rules(version.text, filed))
        except ValidationError:
            return None
        if version.at <= now - GRACE:
            break
    else:
        counting.append(filed)  # before the first change
    return counting[0].model_copy(
        update={
            "conversations": max(rules.conversations for rules in counting),
            "outcomes": max(rules.outcomes for rules in counting),
        }
    )


def loss(before: PrivacyRules, after: PrivacyRules, now: datetime) -> PrivacyLoss | None:
    """What is deleted when `after` takes the place of `before`; None: nothing that is not deleted anyway."""
    shorter = [after.conversations < before.conversations, after.outcomes < before.outcomes]
    if not any(shorter):
        return None
    return PrivacyLoss(
        conversations_before=now - timedelta(days=after.conversations) if shorter[0] else None,
        outcomes_before=now - timedelta(days=after.outcomes) if shorter[1] else None,
        not_until=now + GRACE,
    )

"""Delivers messages to a webhook, signed as the webhooks that we take (connectors.cms.push)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from connectors.cms.fetching import SafeFetch
from connectors.cms.push import signed_headers
from connectors.handover.settings import WebhookTarget
from schemas.handover import Handover


class WebhookCourier:
    """Delivers a site's messages (pipelines.conversations.handovers.Deliver).

    `webhook-id` is the reference: a receiver knows a repeat by it.
    """

    def __init__(self, target: WebhookTarget, fetch: SafeFetch, now: Callable[[], float] = time.time) -> None:
        self._target = target
        self._fetch = fetch
        self._now = now

    async def deliver(self, handover: Handover) -> None:
        """Raises: Away, Refused."""
        body = json.dumps(handover.model_dump(mode="json"), ensure_ascii=False).encode()
        headers = signed_headers(self._target.secret, handover.reference, int(self._now()), body)
        await self._fetch.post(self._target.url, body, headers | {"Content-Type": "application/json"})

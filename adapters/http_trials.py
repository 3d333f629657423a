"""Asks a running system over HTTP under other settings, through its trials: for experiments."""

from __future__ import annotations

import httpx
from pydantic import SecretStr

from adapters.http_gateway import HttpGateway, code_of, parse
from pipelines.evaluate.experiments.sweep import TriedSystem
from pipelines.evaluate.run import AskCase
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.trial import TrialChoices, TrialReport, TrialResult, TrialSettings


class HttpTrials(HttpGateway):
    """One site behind a gateway. Use it as a context manager."""

    def __init__(self, url: str, site: str, key: SecretStr, transport: httpx.AsyncBaseTransport | None = None) -> None:
        super().__init__(f"{url.rstrip('/')}/v1/admin/sites/{site}", key, transport)
        self._site = site
        self._rephrases = False

    async def choices(self) -> TrialChoices:
        """The settings that can be tried. Raises: Retryable: unreachable. WrongUse: it refuses us, or is too old."""
        response = await self.send("GET", "/trials")
        if response.is_error:
            raise WrongUse(f"{response.url}: {response.status_code} {code_of(response)}")
        found = parse(TrialChoices, response)
        self._rephrases = bool(found.models)
        return found

    def under(self, settings: TrialSettings) -> AskCase:
        return TriedSystem(self, self._site, settings, rephrases=self._rephrases).ask

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """One question under settings.

        Raises:
            Retryable: the gateway is unreachable for a minute.
            WrongUse: it refuses the request.
        """
        body = {"question": question, "trials": [settings.model_dump(mode="json", exclude_defaults=True)]}
        response = await self.send("POST", "/trials", json=body)
        if response.is_error:
            raise Retryable(f"{response.url}: {response.status_code} {code_of(response)}")
        [result] = parse(TrialReport, response).trials
        return result

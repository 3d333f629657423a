"""The couriers of all sites, as pagewire.yaml says."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.cms.fetching import SafeFetch
from connectors.handover.mail import MailCourier
from connectors.handover.settings import HandoverSettings
from connectors.handover.webhook import WebhookCourier

Couriers = Mapping[str, WebhookCourier | MailCourier]


def couriers(sites: Mapping[str, tuple[HandoverSettings, str]], fetch: SafeFetch) -> Couriers:
    """By site. Args: sites: each with its title."""
    found: dict[str, WebhookCourier | MailCourier] = {}
    for site, (settings, title) in sites.items():
        if settings.webhook is not None:
            found[site] = WebhookCourier(settings.webhook, fetch)
        elif settings.mail is not None:
            found[site] = MailCourier(settings.mail, title)
    return found

"""Delivers visitors' messages to a webhook, signed as the webhooks that we take (connectors.cms.push), or as mail.

The mail has no words of ours, for it may be read in any language.
"""

from __future__ import annotations

import asyncio
import json
import smtplib
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import EmailMessage

from connectors.cms.fetching import SafeFetch
from connectors.cms.push import signed_headers
from connectors.settings import HandoverSettings, MailTarget, WebhookTarget
from pipelines.runtime.errors import Permanent, Retryable
from schemas.handover import Handover

TIMEOUT = 15.0  # seconds for each step of the conversation with the server
SUBJECT = 60  # characters of the message in the subject


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


class MailAway(Retryable):
    """The mail server is not there, or busy."""

    code = "mail-away"


class MailRefused(Permanent):
    """The mail server refuses the message, or our sign-in."""

    code = "mail-refused"


class MailCourier:
    """Delivers a site's messages (pipelines.conversations.handovers.Deliver).

    `Message-ID` has the reference: mailboxes show a repeat once.

    Args:
        title: of the site.
        connect: opens the connection; default: as the target says. It may block, and raises OSError, SMTPException.
    """

    def __init__(
        self, target: MailTarget, title: str, connect: Callable[[MailTarget], smtplib.SMTP] | None = None
    ) -> None:
        self._target = target
        self._title = title
        self._connect = connect or connected

    async def deliver(self, handover: Handover) -> None:
        """Raises: MailAway, MailRefused."""
        await asyncio.to_thread(self._send, mail_of(handover, self._target, self._title))

    def _send(self, mail: EmailMessage) -> None:
        target, server = self._target, f"{self._target.server}:{self._target.port}"
        try:
            smtp = self._connect(target)
            try:
                if target.user is not None and target.password is not None:
                    smtp.login(target.user, target.password.get_secret_value())
                smtp.send_message(mail)
            finally:
                with suppress(smtplib.SMTPException, OSError):  # it has the mail; how it says goodbye does not matter
                    smtp.quit()
        except smtplib.SMTPRecipientsRefused as err:
            codes = {code for code, _ in err.recipients.values()}
            kind = MailRefused if all(code >= 500 for code in codes) else MailAway
            raise kind(f"{server} takes no mail for {', '.join(err.recipients)}: {sorted(codes)}") from err
        except smtplib.SMTPResponseException as err:
            kind = MailRefused if err.smtp_code >= 500 else MailAway
            raise kind(f"{server} answered {err.smtp_code}: {_text(err.smtp_error)}") from err
        except smtplib.SMTPNotSupportedError as err:
            raise MailRefused(f"{server}: {err}") from err
        except ssl.SSLCertVerificationError as err:
            raise MailRefused(f"{server}: its certificate is not good: {err.verify_message}") from err
        except (smtplib.SMTPException, OSError) as err:
            raise MailAway(f"{server}: {type(err).__name__}: {err}") from err


def connected(target: MailTarget) -> smtplib.SMTP:
    """An encrypted connection, as the target says. Raises: OSError, SMTPException."""
    context = ssl.create_default_context()
    if target.security == "tls":
        return smtplib.SMTP_SSL(target.server, target.port, timeout=TIMEOUT, context=context)
    smtp = smtplib.SMTP(target.server, target.port, timeout=TIMEOUT)
    if target.security == "starttls":
        try:
            smtp.starttls(context=context)
        except BaseException:
            smtp.close()
            raise
    return smtp


def mail_of(handover: Handover, target: MailTarget, title: str) -> EmailMessage:
    """The mail: the message, who wrote it, and the conversation that goes along."""
    first = " ".join(handover.message.split())
    cut = first if len(first) <= SUBJECT else first[: SUBJECT - 1] + "…"
    mail = EmailMessage()
    mail["Subject"] = f"{title}: {cut} [{handover.reference}]"
    mail["From"] = target.sender
    mail["To"] = ", ".join(target.to)
    mail["Date"] = handover.at
    mail["Message-ID"] = f"<{handover.reference}.{handover.site}@{target.sender.rpartition('@')[2]}>"
    if handover.mail is not None and handover.mail.isascii():  # else only some servers take it; it is in the text
        mail["Reply-To"] = handover.mail
    who = "\n".join(filter(None, (handover.name, handover.reply_to, f"{title} · {handover.reference}")))
    talk = [f"» {turn.question}\n\n{turn.answer}" for turn in handover.conversation]
    mail.set_content("\n\n".join([handover.message, f"--\n{who}", *talk]))
    return mail


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


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

"""Messages to a person as they are sent: signed to a webhook, as mail to a mailbox."""

from __future__ import annotations

import smtplib
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from connectors.cms.fetching import SafeFetch
from connectors.cms.push import Delivery
from connectors.handover import MailAway, MailCourier, MailRefused, WebhookCourier, couriers, mail_of
from connectors.settings import HandoverSettings, MailTarget, WebhookTarget
from schemas.handover import Handover, HandoverTurn

SECRET = SecretStr("whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0LCAyNCBieXRlcyBvciBtb3Jl")
HANDOVER = Handover(
    reference="7K3M-9QXD",
    site="town",
    at=datetime(2026, 7, 1, 12, tzinfo=UTC),
    lang="de",
    name="Eva Größe",
    reply_to="eva@town.example",
    message="Meine Tonne wurde nicht geleert.\nSeit zwei Wochen.",
    conversation=(HandoverTurn(question="Wann wird geleert?", answer="Am Montag."),),
)
MAIL = MailTarget(server="mail.example", sender="chat@town.example", to=("desk@town.example", "two@town.example"))


class KeptPosts(SafeFetch):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, bytes, Any]] = []

    async def post(self, url: str, body: bytes, headers: Any) -> None:
        self.sent.append((url, body, headers))


async def test_a_webhook_is_signed_as_those_that_we_take() -> None:
    fetch = KeptPosts()
    courier = WebhookCourier(WebhookTarget(url="https://desk.example/in", secret=SECRET), fetch, lambda: 1_800_000_000)
    await courier.deliver(HANDOVER)
    [(url, body, headers)] = fetch.sent
    assert url == "https://desk.example/in"
    Delivery.of(headers, 1_800_000_010).verify(SECRET, body)
    assert (headers["webhook-id"], Handover.model_validate_json(body)) == ("7K3M-9QXD", HANDOVER)


def test_a_mail_reads_in_any_language_and_is_answered_to_the_visitor() -> None:
    mail = message_from_bytes(bytes(mail_of(HANDOVER, MAIL, "Town")), policy=policy.default)
    assert isinstance(mail, EmailMessage)
    assert mail["Subject"] == "Town: Meine Tonne wurde nicht geleert. Seit zwei Wochen. [7K3M-9QXD]"
    assert (mail["Reply-To"], mail["From"]) == ("eva@town.example", "chat@town.example")
    assert mail["To"] == "desk@town.example, two@town.example"
    assert mail["Message-ID"] == "<7K3M-9QXD.town@town.example>"
    for said in ("Seit zwei Wochen.", "Eva Größe", "eva@town.example", "» Wann wird geleert?", "Am Montag."):
        assert said in mail.get_content()
    phone = mail_of(HANDOVER.model_copy(update={"reply_to": "+49 30 1234567"}), MAIL, "Town")
    assert phone["Reply-To"] is None


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (None, None),
        (ConnectionRefusedError("refused"), MailAway),
        (smtplib.SMTPServerDisconnected("gone"), MailAway),
        (smtplib.SMTPDataError(451, b"later"), MailAway),
        (smtplib.SMTPDataError(554, b"spam"), MailRefused),
        (smtplib.SMTPAuthenticationError(535, b"no"), MailRefused),
        (smtplib.SMTPRecipientsRefused({"desk@town.example": (550, b"unknown")}), MailRefused),
        (smtplib.SMTPRecipientsRefused({"desk@town.example": (450, b"greylisted")}), MailAway),
    ],
)
async def test_what_a_mail_server_says_decides_whether_to_try_again(
    failure: Exception | None, kind: type[Exception] | None
) -> None:
    sent: list[EmailMessage] = []

    class Server(smtplib.SMTP):
        def __init__(self) -> None: ...

        def send_message(self, msg: Any, *_: Any, **__: Any) -> Any:
            if failure is not None:
                raise failure
            sent.append(msg)

        def quit(self) -> Any:
            raise smtplib.SMTPServerDisconnected  # it has the mail all the same

    courier = MailCourier(MAIL, "Town", lambda _: Server())
    if kind is None:
        await courier.deliver(HANDOVER)
        assert len(sent) == 1
    else:
        with pytest.raises(kind):
            await courier.deliver(HANDOVER)


def test_settings_that_cannot_work_are_refused() -> None:
    mail = MAIL.model_dump()
    for wrong in (
        {},
        {"mail": mail, "webhook": {"url": "https://desk.example", "secret": SECRET}},
        {"mail": mail | {"user": "chat"}},
        {"mail": mail | {"user": "chat", "password": "p", "security": "none"}},
        {"mail": mail | {"sender": "a@b\nBcc: c@d"}},
        {"webhook": {"url": "https://desk.example", "secret": "short"}},
    ):
        with pytest.raises(ValidationError):
            HandoverSettings.model_validate(wrong)
    both = {"a": (HandoverSettings(mail=MAIL), "A")}
    assert isinstance(couriers(both, SafeFetch())["a"], MailCourier)

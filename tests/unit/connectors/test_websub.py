"""WebSub: which hub a feed names, and what belongs to a subscription."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from connectors.cms.sitemap.discover import NotASitemap
from connectors.cms.sitemap.feeds import hub_of
from connectors.cms.sitemap.websub import Subscription

FEED = "https://www.town.example/feed.xml"
TOPIC = "https://www.town.example/feed?kind=news&lang=de"
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="https://hub.example/"/>
<link rel="hub" href="https://second.example/"/><link rel="self" href="/atom"/>
<entry><link rel="self" href="/x"/></entry></feed>"""
RSS = b"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>https://www.town.example/</link>
<atom:link rel="hub" href="//hub.example/push"/>
<item><atom:link rel="hub" href="https://evil.example/"/></item></channel></rss>"""


@pytest.mark.parametrize(
    ("body", "header", "hub", "topic"),
    [
        (ATOM, "", "https://hub.example/", "https://www.town.example/atom"),
        (RSS, "", "https://hub.example/push", FEED),
        (b"<rss><channel/></rss>", "", None, FEED),
        (b"<rss><channel/></rss>", '<https://h.example/>; rel="hub", </f>; rel=self', "https://h.example/",
         "https://www.town.example/f"),
        (b"<rss><channel/></rss>", '<https://h.example/>; rel="hub self"', "https://h.example/", "https://h.example/"),
        (ATOM, '<https://h.example/>; rel="hub"', "https://h.example/", FEED),
        (b"<rss><channel/></rss>", '<https://[>; rel="hub"', None, FEED),
    ],
)  # fmt: skip
def test_the_hub_and_the_topic_of_a_feed(body: bytes, header: str, hub: str | None, topic: str) -> None:
    assert hub_of(body, header, FEED) == (hub, topic)


def test_what_is_no_feed_has_no_hub() -> None:
    for odd in (b"plain", b"<rss", b""):
        with pytest.raises(NotASitemap):
            hub_of(odd, "", FEED)


def subscription(**more: str) -> Subscription:
    values = {"site": "town", "connector": "news", "topic": TOPIC, "secret": "of the gateways"} | more
    return Subscription(values["site"], values["connector"], values["topic"], SecretStr(values["secret"]))


def test_a_subscription_is_of_one_site_connector_topic_and_secret() -> None:
    own = subscription()
    others = [subscription(**{name: "x"}) for name in ("site", "connector", "topic", "secret")]
    assert len({one.token for one in (own, *others)} | {one.key for one in (own, *others)}) == 10
    assert own.is_token(subscription().token)
    for wrong in ("", "ü", own.key, others[0].token):
        assert not own.is_token(wrong)
    assert own.key not in repr(own)


def test_the_request_names_the_callback_the_topic_and_the_key() -> None:
    own = subscription()
    form = {name: values[0] for name, values in parse_qs(own.request("https://chat.example.org/").decode()).items()}
    callback = urlsplit(form.pop("hub.callback"))
    assert form == {
        "hub.mode": "subscribe", "hub.topic": TOPIC, "hub.lease_seconds": "864000", "hub.secret": own.key
    }  # fmt: skip
    assert (callback.netloc, callback.path) == ("chat.example.org", "/v1/sites/town/connectors/news/websub")
    assert parse_qs(callback.query) == {"topic": [TOPIC], "token": [own.token]}
    assert len(own.key) < 200  # bytes, by the standard


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures(algorithm: str) -> None:
    own, body = subscription(), b"<feed/>"
    right = f"{algorithm}={hmac.digest(own.key.encode(), body, algorithm).hex()}"
    assert own.is_signed(right, body)
    assert own.is_signed(right.upper().replace("SHA", "sha"), body)
    assert not own.is_signed(right, body + b" ")
    assert not subscription(topic="x").is_signed(right, body)
    for wrong in ("", algorithm, f"{algorithm}=", f"md5={right}", right[:-1], f"{algorithm}=ü"):
        assert not own.is_signed(wrong, body)

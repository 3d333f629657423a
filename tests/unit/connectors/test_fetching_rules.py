"""Which addresses and URLs are fetched: the rules alone, no socket."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.cms.addresses import AddressFilter, is_public, unwrapped
from connectors.cms.fetching import FetchRefused, checked, shown
from wiring.settings_file import load

PRIVATE = [
    *map(ip_network, ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12")),
    *map(
        ip_network, ("192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
    ),
]
in_private = st.sampled_from(PRIVATE).flatmap(lambda network: st.ip_addresses(network=network))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "100.100.100.200",  # Alibaba's metadata, in the carriers' shared range
        "168.63.129.16",  # Azure's
        "169.254.169.254",  # the others'
        "192.0.0.192",  # Oracle's
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fd00:ec2::254",  # Amazon's
        "ff02::1",
        "2001:db8::1",
        "2001::1",  # Teredo
        "64:ff9b:1::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_behind_the_walls(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::6810:1", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(in_private)
def test_no_spelling_of_a_private_address_is_public(address: IPv4Address) -> None:
    number = int(address)
    spellings = [
        address,
        IPv6Address((0xFFFF << 32) | number),  # mapped
        IPv6Address(number),  # compatible
        IPv6Address((0x64FF9B << 96) | number),  # through NAT64
        IPv6Address((0x2002 << 112) | (number << 80)),  # through 6to4
    ]
    assert [each for each in spellings if is_public(each)] == []
    assert not any(AddressFilter().permit("name.example", str(each)) for each in spellings)


@given(st.ip_addresses())
def test_what_is_public_is_neither_private_nor_local(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        inner = unwrapped(address)
        assert inner.is_global
        assert not any((inner.is_private, inner.is_loopback, inner.is_link_local, inner.is_multicast))


def test_a_setting_opens_hosts_addresses_and_networks() -> None:
    walls = AddressFilter(["cms.internal", "10.1.0.0/16", "192.168.7.1", "::1"])
    assert walls.permit("CMS.internal.", "172.16.0.1")
    assert walls.permit("any", "10.1.2.3")
    assert walls.permit("any", "::ffff:10.1.2.3")
    assert walls.permit("any", "192.168.7.1")
    assert walls.permit("any", "::1")
    assert not walls.permit("www.cms.internal", "172.16.0.1")
    assert not walls.permit("any", "10.2.0.1")
    assert not walls.permit("any", "192.168.7.2")


def test_the_zone_of_an_address_does_not_hide_it() -> None:
    assert not AddressFilter().permit("any", "fe80::1%eth0")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://files.example/a",
        "gopher://files.example",
        "//files.example/a",
        "files.example/a",
        "http://",
        "https:///a",
        "http://[::1",
        "http://user:secret@files.example/",
        "http://files.example:99999/",
        "data:text/plain,hello",
        "",
    ],
)
def test_what_is_no_url_to_fetch_is_refused_without_telling_secrets(url: str) -> None:
    with pytest.raises(FetchRefused) as refused:
        checked(url)
    assert "secret" not in str(refused.value)


@given(st.text(max_size=60))
def test_no_text_is_more_than_refused(text: str) -> None:
    try:
        url = checked(text)
    except FetchRefused:
        return
    assert url.scheme in ("http", "https")
    assert url.host


def test_a_url_is_shown_without_what_may_be_secret() -> None:
    assert shown("https://u:p@files.example:8443/a b?key=1#x") == "https://files.example:8443/a%20b"


def test_the_setting_is_one_line_in_the_environment(tmp_path: Path) -> None:
    settings = load({"PAGEWIRE_FETCH_ALLOW": "cms.internal, 10.1.0.0/16,"})
    assert settings.fetch_allow == ("cms.internal", "10.1.0.0/16")
    file = tmp_path / "pagewire.yaml"
    file.write_text("fetch_allow: [cms.internal]")
    assert load({"PAGEWIRE_CONFIG": str(file)}).fetch_allow == ("cms.internal",)

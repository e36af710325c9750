"""Addresses that attackers write, and whether they belong to the public internet."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.http.addresses import is_metadata_address, is_public_address, is_public_url
from kernel.http.resolver import RequestRefused, resolve_url
from sandbox.egress import choose_address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com",
        "//hooks.example.com/",
        "https://",
        "https:///path",
        "ftp://hooks.example.com/",
        "http://hooks.example.com/",
        "javascript:alert(1)",
        "https://me:word@hooks.example.com/",
        "https://@hooks.example.com/",
        "https://hooks.example.com@10.0.0.1/",
        "https://hooks.example.com\\@10.0.0.1/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://0.0.0.0/",
        "https://10.0.0.8/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://172.16.3.4/",
        "https://192.168.0.1./",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::]/",
        "https://[::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[2002:a00:1::]/",
        "https://[::1",
        "https://localhost/",
        "https://localhost./",
        "https://web/",
        "https://db.internal/",
        "https://printer.local/",
        "https://evil.localhost/",
        "https://hooks.example.com:99999/",
        "https://hooks.example.com:x/",
        "https://hooks.exa mple.com/",
        "https://hooks.example.com/\r\nHost: x",
        "https://hooks..example.com/",
        "https://\u0131nternal/",
        "https://ⓛocalhost/",
        "https://" + "a" * 500 + ".example.com/",
    ],
)
def test_address_inside_or_odd_is_not_outside(url: str) -> None:
    assert not is_public_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/silas",
        "https://hooks.example.com:8443/a?b=c#d",
        "https://HOOKS.Example.COM./",
        "https://xn--bcher-kva.example.org/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
    ],
)
def test_public_address_is_outside(url: str) -> None:
    assert is_public_url(url)


def test_scheme_may_be_widened() -> None:
    assert is_public_url("http://hooks.example.com/", schemes=("https", "http"))


# Beside each, who answers there. By IANA's registries of special addresses and what the clouds document.
INSIDE = (
    "0.0.0.0",
    "0.255.255.255",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.2",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.31.255.255",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.251",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:0:10.0.0.1",
    "::ffff:0:8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:a00:1::",
    "2002:808:808::1",
    "2606:4700::5efe:10.0.0.1",
    "2606:4700::200:5efe:192.168.0.1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
)


@pytest.mark.parametrize("address", INSIDE)
def test_special_address_is_inside(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::200e", "64:ff9b::8.8.8.8"]
)
def test_public_address_is_not_special(address: str) -> None:
    assert is_public_address(address)


_WRAPPINGS = (
    "{}",
    "::{}",
    "::ffff:{}",
    "::ffff:0:{}",
    "64:ff9b::{}",
    "64:ff9b:1::{}",
    "2606:4700::5efe:{}",
    "2606:4700::200:5efe:{}",
)


@given(st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=4, network="169.254.0.0/16"))
def test_inner_address_is_inside_however_it_is_wrapped(address: IPv4Address) -> None:
    number = int(address)
    sixtofour = f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1"
    teredo = f"2001:0:808:808:0:0:{(number >> 16) ^ 0xFFFF:x}:{(number & 0xFFFF) ^ 0xFFFF:x}"
    wrapped = (*(form.format(address) for form in _WRAPPINGS), sixtofour, teredo)
    assert [each for each in wrapped if is_public_address(each)] == []


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:42::42",
        "fd00:a9fe:a9fe::1",
        "fd00:c1::a9fe:a9fe",
        "fe80::a9fe:a9fe",
        "fe80::a9fe:a9fe%eth0",
        "::ffff:169.254.169.254",
        "::ffff:0:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
    ],
)
def test_metadata_of_a_cloud_is_opened_by_no_setting(address: str) -> None:
    assert is_metadata_address(address)
    assert choose_address("metadata.example:80", [address], private=["metadata.example:80"]) == ""


def test_name_is_not_looked_up_to_metadata_where_the_inside_is_allowed() -> None:
    with pytest.raises(RequestRefused) as no:
        resolve_url(urlsplit("http://169.254.169.254/latest/"), allow_private=True)
    assert no.value.code == "address_inside"


def test_inside_is_reached_where_the_operator_allows_it() -> None:
    assert resolve_url(urlsplit("http://127.0.0.1:8080/x"), allow_private=True) == "http://127.0.0.1:8080/x"
    assert not is_metadata_address("10.0.0.1")


@given(st.ip_addresses())
def test_address_outside_is_of_the_public_internet_by_each_property(address: IPv4Address | IPv6Address) -> None:
    if not is_public_address(str(address)):
        return
    number = int(address)
    if isinstance(address, IPv6Address) and (address.ipv4_mapped or address in ip_network("64:ff9b::/96")):
        address = IPv4Address(number & 0xFFFFFFFF)
    assert address.is_global
    assert not address.is_private
    assert not address.is_multicast
    assert not address.is_reserved
    assert not address.is_loopback
    assert not address.is_link_local
    assert not address.is_unspecified


@given(st.ip_addresses(v=6), st.sampled_from(["eth0", "1", "25eth0", "lo"]))
def test_address_with_a_zone_is_inside(address: IPv6Address, zone: str) -> None:
    assert not is_public_address(f"{address}%{zone}")


# As the resolver reads them: each is an address of this machine or its network.
@pytest.mark.parametrize(
    "spelling",
    [
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0177.0.0.1",
        "0x7f.1",
        "10.1",
        "0",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
    ],
)
def test_address_in_another_spelling_is_inside_before_and_after_it_is_looked_up(spelling: str) -> None:
    assert not is_public_url(f"http://{spelling}/", schemes=("http",))
    with pytest.raises(RequestRefused) as no:
        resolve_url(urlsplit(f"http://{spelling}/"), allow_private=False)
    assert no.value.code in ("address_inside", "no_such_host")


def test_name_that_stands_for_another_address_a_moment_later_is_called_at_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["8.8.8.8", "127.0.0.1"])

    def look_up(host: str, port: int, **_: object) -> list[object]:
        return [(2, 1, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert resolve_url(urlsplit("http://rebinding.example/x"), allow_private=False) == "http://8.8.8.8:80/x"
    with pytest.raises(RequestRefused) as no:
        resolve_url(urlsplit("http://rebinding.example/x"), allow_private=False)
    assert no.value.code == "address_inside"


def test_name_of_which_one_address_is_inside_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(RequestRefused) as no:
        resolve_url(urlsplit("http://two.example/"), allow_private=False)
    assert no.value.code == "address_inside"


@given(st.text(max_size=30))
def test_any_words_are_answered(words: str) -> None:
    assert is_public_address(words) in (True, False) and is_public_url(f"https://{words}") in (True, False)

"""Which addresses are outside of the house? Tables, of what attackers write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.outside import is_outside, is_outside_url


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
    assert not is_outside_url(url)


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
    assert is_outside_url(url)


def test_scheme_may_be_widened() -> None:
    assert is_outside_url("http://hooks.example.com/", schemes=("https", "http"))


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_private_address_is_inside_however_it_is_wrapped(address: object) -> None:
    wrapped = (str(address), f"::ffff:{address}", f"64:ff9b::{address}")
    assert not any(map(is_outside, wrapped))


@given(st.text(max_size=30))
def test_any_words_are_answered(words: str) -> None:
    assert is_outside(words) in (True, False) and is_outside_url(f"https://{words}") in (True, False)

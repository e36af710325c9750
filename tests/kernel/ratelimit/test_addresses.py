"""Which senders are counted together, and who is not counted."""

from __future__ import annotations

import pytest

from kernel.ratelimit.addresses import address_key, is_own_machine


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", ""])
def test_own_machine_is_told(address: str) -> None:
    assert is_own_machine(address)


@pytest.mark.parametrize("address", ["10.0.0.1", "203.0.113.9", "2001:db8::1", "localhost", "nonsense"])
def test_everybody_else_is_counted(address: str) -> None:
    assert not is_own_machine(address)


def test_household_is_counted_once_over_ipv6() -> None:
    assert address_key("2001:db8:1:2::5") == address_key("2001:db8:1:2:ffff::9")
    assert address_key("2001:db8:1:2::5") != address_key("2001:db8:1:3::5")


def test_address_is_the_same_however_it_is_written() -> None:
    assert address_key("::ffff:203.0.113.9") == address_key("203.0.113.9")
    assert address_key("203.0.113.9") != address_key("203.0.113.10")


def test_address_cannot_be_read_from_its_key() -> None:
    assert "203.0.113.9" not in address_key("203.0.113.9")
    assert len(address_key("no address")) == 32

"""Certificates of the installation key: what they cover, and whose are believed."""

from __future__ import annotations

from typing import Any

import pytest

from kernel import trust
from kernel.errors import SilasError

FIELDS = {"tenant": "a", "user": "b", "key_id": "c", "public_key": "d"}


def test_certificate_covers_exactly_what_was_certified() -> None:
    certificate = trust.certify("approver_key", FIELDS)
    assert trust.is_certified("approver_key", FIELDS, certificate)
    assert not trust.is_certified("policy", FIELDS, certificate)
    for field in FIELDS:
        assert not trust.is_certified("approver_key", {**FIELDS, field: "other"}, certificate)


def test_certificate_of_another_signing_key_is_not_believed() -> None:
    certificate = trust.certify("approver_key", FIELDS, signing_key="of-somebody-else")
    assert not trust.is_certified("approver_key", FIELDS, certificate)


@pytest.mark.parametrize("certificate", ["", "AAAA", "not base64", "é"])
def test_what_is_no_signature_is_no_certificate(certificate: str) -> None:
    assert not trust.is_certified("approver_key", FIELDS, certificate)


def test_pinned_key_is_believed_without_the_signing_key(settings: Any) -> None:
    certificate = trust.certify("approver_key", FIELDS)
    settings.SILAS_ROOT_KEYS = (trust.root_of(settings.SILAS_SIGNING_KEY),)
    settings.SILAS_SIGNING_KEY = ""
    assert trust.is_certified("approver_key", FIELDS, certificate)


def test_several_pinned_keys_are_believed_while_the_signing_key_changes(settings: Any) -> None:
    old = trust.certify("approver_key", FIELDS, signing_key="old")
    new = trust.certify("approver_key", FIELDS, signing_key="new")
    settings.SILAS_SIGNING_KEY = ""
    settings.SILAS_ROOT_KEYS = (trust.root_of("old"), trust.root_of("new"))
    assert trust.is_certified("approver_key", FIELDS, old)
    assert trust.is_certified("approver_key", FIELDS, new)


def test_process_without_the_signing_key_certifies_nothing_and_without_a_pin_believes_nothing(settings: Any) -> None:
    certificate = trust.certify("approver_key", FIELDS)
    settings.SILAS_SIGNING_KEY, settings.SILAS_ROOT_KEYS = "", ()
    assert not trust.is_certified("approver_key", FIELDS, certificate)
    with pytest.raises(SilasError, match="SILAS_SIGNING_KEY"):
        trust.certify("approver_key", FIELDS)

"""Every table of a tenant is declared: exported with a person's data, left out for a reason, or about no one person."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.apps import apps

from apps.contacts.erasure import ERASED_AT_THE_END, ERASERS
from apps.contacts.personal_data import (
    ERASED_ALONG,
    EXPORTED,
    HOLD_NO_WORDS,
    KEPT,
    LEFT_OUT,
    NOT_PERSONAL,
    PLANS_ARE_KEPT,
    Exported,
    Link,
)
from kernel.tenancy import TenantModel

_HIDDEN = ("sealed", "hash", "token", "embedding", "nonce", "secret")


def declared() -> Counter[str]:
    return Counter([*(kind.model for kind in EXPORTED), *LEFT_OUT, *NOT_PERSONAL])


def test_every_table_of_a_tenant_is_declared_once() -> None:
    tables = {
        model._meta.label for model in apps.get_models() if issubclass(model, TenantModel) and not model._meta.proxy
    }
    known = declared()
    assert tables - known.keys() == set()
    assert known.keys() - tables == set()
    assert [name for name, times in known.items() if times > 1] == []


@pytest.mark.parametrize("kind", EXPORTED, ids=lambda kind: kind.file)
def test_declared_fields_exist_and_none_is_sealed(kind: Exported) -> None:
    for name in [*kind.fields, kind.path, *([kind.moment] if kind.moment else [])]:
        model: Any = apps.get_model(kind.model)
        for part in name.split("__"):
            field = model._meta.pk if part == "pk" else model._meta.get_field(part)
            model = field.related_model
    assert [name for name in kind.fields for word in _HIDDEN if word in name] == []


def test_files_of_the_archive_have_names_of_their_own() -> None:
    names = [kind.file for kind in EXPORTED]
    assert len(set(names)) == len(names)
    assert "manifest" not in names
    assert "audit_log" not in names


def test_conversations_are_left_to_whom_they_belong() -> None:
    """A kind found by its conversation has a moment, unless it says nothing that one of several customers wrote."""
    without = {kind.file for kind in EXPORTED if kind.link is Link.SESSION and not kind.moment}
    assert without == {"conversations", "labels"}


def test_an_erasure_says_of_every_table_of_a_person_what_it_does_with_it() -> None:
    exported = Counter([*ERASERS, *ERASED_AT_THE_END, *KEPT])
    assert exported == Counter(kind.model for kind in EXPORTED)
    assert Counter([*ERASED_ALONG, *HOLD_NO_WORDS, *PLANS_ARE_KEPT]) == Counter(list(LEFT_OUT))

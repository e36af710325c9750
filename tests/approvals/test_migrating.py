"""Do cards of before their course was kept come through migration 0004 whole? Tried on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connections

from tests.old_databases import empty_database, looking, migrate

BEFORE, AFTER = ("approvals", "0003_answers_policies_passkeys"), ("approvals", "0004_course_of_cards")
OPENED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ENDS, DECIDED = OPENED + timedelta(hours=1), OPENED + timedelta(minutes=7)
SCRATCH = "scratch"


@dataclass
class Old:
    """A database as it was before, and the cards in it by what became of them."""

    alias: str
    cards: dict[str, UUID] = field(default_factory=dict)
    words: dict[UUID, Any] = field(default_factory=dict)

    def row(self, name: str, *columns: str) -> tuple[Any, ...]:
        with looking(self.alias) as cursor:
            cursor.execute(f"SELECT {', '.join(columns)} FROM approvals_card WHERE id = %s", [self.cards[name]])
            found: tuple[Any, ...] = cursor.fetchone()
        return found


@pytest.fixture(scope="module")
def alias(migrated: None, django_db_blocker: Any, superuser_dsn: str) -> Iterator[str]:
    with empty_database(SCRATCH, superuser_dsn=superuser_dsn, unblock=django_db_blocker.unblock) as alias:
        yield alias


@pytest.fixture(scope="module")
def old(alias: str) -> Old:
    """Every state that a card could be in before, carried over."""
    base = Old(alias)
    apps = migrate(base.alias, BEFORE)
    with looking(base.alias):
        tenant = apps.get_model("tenants", "Tenant").objects.using(alias).create(name="Old", slug="old")
        user = apps.get_model("tenants", "User").objects.using(alias).create(email="old@example.test")
        for name in ("open", "approved", "declined", "edited", "expired", "withdrawn"):
            _make(base, apps, name, tenant=tenant, user=user)
    base.words = {card: base.row(name, *WORDS) for name, card in base.cards.items()}
    migrate(base.alias, AFTER)
    return base


WORDS = ("intent", "rationale", "consequence::text", "payload::text", "payload_hash", "expires_at", "created_at")
VERDICTS = {"approved": "approved", "declined": "declined", "edited": "edit_requested"}


def _make(base: Old, apps: Any, name: str, *, tenant: Any, user: Any) -> None:
    status = "decided" if name in VERDICTS else name
    card = (
        apps.get_model("approvals", "Card")
        .objects.using(base.alias)
        .create(
            tenant=tenant,
            kind="plan",
            risk="medium",
            intent=f"Change it: {name}",
            rationale="Somebody asked.",
            consequence={"approve": "Change it", "decline": "Leave it"},
            payload={"id": name},
            payload_hash="0" * 64,
            scope="full_plan",
            token_seconds=60,
            subject_kind="work_item",
            subject_id=uuid4(),
            status=status,
            created_at=OPENED,
            expires_at=ENDS,
        )
    )
    base.cards[name] = card.pk
    if name in VERDICTS:
        decisions = apps.get_model("approvals", "Decision").objects.using(base.alias)
        decisions.create(tenant=tenant, card=card, user=user, verdict=VERDICTS[name], decided_at=DECIDED)


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_decided_card_was_settled_when_it_was_decided(old: Old, name: str) -> None:
    assert old.row(name, "status", "settled_at", "withdrawal") == ("decided", DECIDED, "")


def test_expired_card_was_settled_when_its_time_was_up(old: Old) -> None:
    assert old.row("expired", "status", "settled_at", "withdrawal") == ("expired", ENDS, "")


def test_withdrawn_card_has_a_reason_now(old: Old) -> None:
    assert old.row("withdrawn", "status", "settled_at", "withdrawal") == ("withdrawn", ENDS, "staff")


def test_open_card_still_waits_for_anybody(old: Old) -> None:
    assert old.row("open", "status", "settled_at", "assignee_id", "withdrawal") == ("open", None, None, "")


def test_what_cards_say_was_not_touched(old: Old) -> None:
    assert {card: old.row(name, *WORDS) for name, card in old.cards.items()} == old.words


@pytest.mark.parametrize("name", ["approved", "expired", "withdrawn"])
def test_settled_card_stays_settled_afterwards(old: Old, name: str) -> None:
    """The wall that the migration opened for itself stands again."""
    with pytest.raises(DatabaseError, match="stays settled"), looking(old.alias) as cursor:
        cursor.execute("UPDATE approvals_card SET settled_at = now() WHERE id = %s", [old.cards[name]])


def test_words_of_an_old_card_cannot_be_rewritten_afterwards(old: Old) -> None:
    with pytest.raises(DatabaseError, match="cannot be rewritten"), looking(old.alias) as cursor:
        cursor.execute("UPDATE approvals_card SET intent = 'x' WHERE id = %s", [old.cards["open"]])


def test_platform_s_look_ends_with_the_migration(old: Old) -> None:
    with connections[old.alias].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM approvals_card")
        assert cursor.fetchone() == (0,)


def test_way_back_and_forth_leaves_every_card_as_it_was(old: Old) -> None:
    before = {name: old.row(name, "status", "settled_at", "withdrawal") for name in old.cards}
    migrate(old.alias, BEFORE)
    migrate(old.alias, AFTER)
    assert {name: old.row(name, "status", "settled_at", "withdrawal") for name in old.cards} == before

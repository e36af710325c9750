"""What failed for good waits for a person's word, and is done once all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import dead_letters, queries
from apps.bus.enums import Queue
from apps.bus.queries import Depth
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.bus.conftest import bury, held, row, take
from tests.factories.bus import make_message
from tests.rivals import race


def say(word: Any, tenant: Any, message_pk: Any, user: Any) -> None:
    with tenant_scope(tenant):
        word(message_pk, user=user)


BOTH = pytest.mark.parametrize("word", [dead_letters.retry, dead_letters.drop])


def test_message_tried_again_has_all_its_attempts_a_new_fence_and_its_place_in_its_scope(
    tenant: Any, owner: Any
) -> None:
    message = bury(tenant)
    make_message(tenant)
    say(dead_letters.retry, tenant, message.pk, owner)
    found = row(tenant, pk=message.pk)
    assert found.state == "queued"
    assert found.attempts == 0
    assert found.finished_at is None
    lease = held(tenant)
    assert lease.message.pk == message.pk
    assert lease.fence == 2


def test_dropped_message_is_kept_and_never_delivered(tenant: Any, owner: Any) -> None:
    message = bury(tenant)
    say(dead_letters.drop, tenant, message.pk, owner)
    assert take(tenant) is None
    assert row(tenant, pk=message.pk).state == "dropped"
    assert row(tenant, pk=message.pk).reason == "poison"


@BOTH
def test_word_about_a_message_that_is_not_dead_is_refused(tenant: Any, owner: Any, word: Any) -> None:
    message = make_message(tenant)
    with pytest.raises(SilasError) as refused:
        say(word, tenant, message.pk, owner)
    assert refused.value.code == "not_dead"


@BOTH
@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
def test_word_of_anybody_but_an_owner_is_refused(
    tenant: Any, word: Any, role: str, request: pytest.FixtureRequest
) -> None:
    message, user = bury(tenant), request.getfixturevalue(role)
    with pytest.raises(SilasError) as refused:
        say(word, tenant, message.pk, user)
    assert refused.value.code == "forbidden_role"
    assert row(tenant, pk=message.pk).state == "dead"


@BOTH
def test_word_about_another_tenants_or_an_unknown_message_finds_nothing(
    tenant: Any, other_tenant: Any, owner: Any, word: Any
) -> None:
    for pk in (bury(other_tenant).pk, uuid4()):
        with pytest.raises(NotFound):
            say(word, tenant, pk, owner)


def test_rivals_for_one_dead_message_decide_once(tenant: Any, owner: Any) -> None:
    message = bury(tenant)
    answers = race(*(lambda word=word: say(word, tenant, message.pk, owner) for word in [dead_letters.retry] * 4))
    assert sum(answer is None for answer in answers) == 1


@pytest.mark.parametrize(
    ("word", "event"),
    [(dead_letters.retry, AuditEvent.MESSAGE_RETRIED), (dead_letters.drop, AuditEvent.MESSAGE_DROPPED)],
)
def test_word_is_written_down_with_whose_it_was(tenant: Any, owner: Any, word: Any, event: AuditEvent) -> None:
    message = bury(tenant, content="my secret")
    say(word, tenant, message.pk, owner)
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=event)
    assert entry.actor == f"user:{owner.pk}"
    assert entry.subject == f"message:{message.pk}"


def test_depths_count_what_is_due_later_held_and_failed_and_since_when(tenant: Any) -> None:
    bury(tenant, scope_id="a")
    _, oldest, _ = (make_message(tenant, scope_id=scope) for scope in "bcd")
    make_message(tenant, scope_id="e", due_at=now() + timedelta(hours=1))
    held(tenant)
    with tenant_scope(tenant):
        depths = {depth.queue: depth for depth in queries.depths()}
    assert depths.pop(Queue.EXECUTOR) == Depth(
        Queue.EXECUTOR, waiting=2, scheduled=1, held=1, dead=1, oldest=oldest.available_at
    )
    # The dead letter's notice is a letter to the owners.
    assert depths.pop(Queue.TRUSTED).waiting == 1
    assert list(depths.values()) == [Depth(queue) for queue in Queue if queue not in (Queue.EXECUTOR, Queue.TRUSTED)]


def test_lists_of_one_tenant_show_nothing_of_another(tenant: Any, other_tenant: Any) -> None:
    bury(other_tenant, scope_id="a")
    make_message(other_tenant, scope_id="b")
    held(other_tenant)
    with tenant_scope(tenant):
        assert queries.held_messages(9) == []
        assert queries.dead_letters(9) == []

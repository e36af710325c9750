"""A queue under any order of words and silences, beside a model of it that fits on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from apps.bus import dead_letters, services
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease, LeaseLost
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import due_scopes, lease_any, let_leases_run_out, let_waits_pass, make_message
from tests.factories.tenants import make_member, make_tenant

NAMES = ["a", "b", "c"]
SCOPES = st.sampled_from(NAMES)


@dataclass
class Expected:
    """What the model knows of one message."""

    scope: str
    state: str = "queued"
    attempts: int = 0
    fence: int = 0
    due: bool = True
    expired: bool = False


class QueueMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.tenant = make_tenant()
        self.owner = make_member(self.tenant, "owner")
        self.model: dict[UUID, Expected] = {}
        self.leases: list[Lease] = []

    def live(self, scope: str) -> list[UUID]:
        return [pk for pk, row in self.model.items() if row.scope == scope and row.state in ("queued", "leased")]

    def deliverable(self, scope: str) -> UUID | None:
        """The scope's oldest live message, if it may go out: due, or let go by a silent holder with attempts left, and
        nothing younger is held (what an owner puts in line again is older than what went on meanwhile)."""
        oldest = self.free_head(scope)
        younger_held = any(self.model[pk].state == "leased" for pk in self.live(scope) if pk != oldest)
        return None if younger_held else oldest

    def free_head(self, scope: str) -> UUID | None:
        oldest = next(iter(self.live(scope)), None)
        if oldest is None:
            return None
        row = self.model[oldest]
        free = row.due if row.state == "queued" else row.expired and row.attempts < 4
        return oldest if free else None

    def fail(self, row: Expected, *, due: bool) -> None:
        row.attempts += 1
        row.state = "dead" if row.attempts == 5 else "queued"
        row.due, row.expired = due, False

    @rule(scope=SCOPES)
    def enqueue(self, scope: str) -> None:
        self.model[make_message(self.tenant, scope_id=scope).pk] = Expected(scope)

    @rule(scope=st.none() | SCOPES)
    def lease(self, scope: str | None) -> None:
        with tenant_scope(self.tenant):
            lease = lease_any("executor", consumer="machine", scope_id=scope)
        deliverable = {self.deliverable(name) for name in ([scope] if scope else NAMES)} - {None}
        assert bool(lease) == bool(deliverable)
        oldest = lease.message.pk if lease else None
        assert oldest is None or oldest in deliverable
        if lease and oldest:
            row = self.model[oldest]
            row.attempts += row.state == "leased"
            row.state, row.expired, row.fence = "leased", False, row.fence + 1
            self.leases.append(lease)

    def say(self, data: Any, word: Any) -> Expected | None:
        """Say `word` with any lease ever given; only the last one given of a leased message may be heard."""
        lease = data.draw(st.sampled_from(self.leases))
        row = self.model[lease.message.pk]
        ours = row.state == "leased" and row.fence == lease.fence
        with tenant_scope(self.tenant):
            if not ours:
                with pytest.raises(LeaseLost):
                    word(lease)
                return None
            word(lease)
        return row

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def ack(self, data: Any) -> None:
        if row := self.say(data, services.ack):
            row.state = "acked"

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def nack(self, data: Any) -> None:
        if row := self.say(data, lambda lease: services.nack(lease, reason="broken")):
            self.fail(row, due=False)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def heartbeat(self, data: Any) -> None:
        if row := self.say(data, services.heartbeat):
            row.expired = False

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def dead_letter(self, data: Any) -> None:
        if row := self.say(data, lambda lease: services.dead_letter(lease, "poison")):
            row.state, row.attempts = "dead", row.attempts + 1

    def decide(self, data: Any, word: Any) -> Expected | None:
        """An owner's word about any message ever sent; only what is dead takes it."""
        pk = data.draw(st.sampled_from(sorted(self.model)))
        row = self.model[pk]
        with tenant_scope(self.tenant):
            if row.state != "dead":
                with pytest.raises(SilasError):
                    word(pk, user=self.owner)
                return None
            word(pk, user=self.owner)
        return row

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def retry(self, data: Any) -> None:
        if row := self.decide(data, dead_letters.retry):
            row.state, row.attempts, row.due, row.expired = "queued", 0, True, False

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def drop(self, data: Any) -> None:
        if row := self.decide(data, dead_letters.drop):
            row.state = "dropped"

    @rule(scope=SCOPES)
    def holders_fall_silent(self, scope: str) -> None:
        let_leases_run_out(self.tenant, scope_id=scope)
        for pk in self.live(scope):
            self.model[pk].expired = self.model[pk].state == "leased"

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def defer(self, data: Any) -> None:
        if row := self.say(data, lambda lease: services.defer(lease, seconds=60, reason="in_use")):
            row.state, row.due, row.expired = "queued", False, False

    @rule()
    def those_who_wait_are_found(self) -> None:
        assert due_scopes(self.tenant, Queue.EXECUTOR) == [name for name in NAMES if self.free_head(name)]

    @rule()
    def waits_pass(self) -> None:
        let_waits_pass(self.tenant)
        for row in self.model.values():
            row.due = True

    @rule()
    def sweep(self) -> None:
        with tenant_scope(self.tenant):
            services.expire_leases()
        for row in self.model.values():
            if row.state == "leased" and row.expired:
                self.fail(row, due=True)

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        if not hasattr(self, "tenant"):
            return
        with tenant_scope(self.tenant):
            messages = QueueMessage.objects.filter(queue="executor")
            rows = {row.pk: (row.state, row.attempts, row.fence) for row in messages}
        assert rows == {pk: (row.state, row.attempts, row.fence) for pk, row in self.model.items()}


def test_queue_under_any_order_of_words_behaves_as_its_model(database: None) -> None:
    run_state_machine_as_test(
        QueueMachine, settings=settings(max_examples=30, stateful_step_count=40, deadline=None, database=None)
    )

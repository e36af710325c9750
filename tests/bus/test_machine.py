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

from apps.bus import services
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease, LeaseLost
from kernel.tenancy import tenant_scope
from tests.factories.bus import let_leases_run_out, let_waits_pass, make_message
from tests.factories.tenants import make_tenant

SCOPES = st.sampled_from(["a", "b"])


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
        self.model: dict[UUID, Expected] = {}
        self.leases: list[Lease] = []

    def live(self, scope: str) -> list[UUID]:
        return [pk for pk, row in self.model.items() if row.scope == scope and row.state in ("queued", "leased")]

    def deliverable(self, scope: str) -> UUID | None:
        """The scope's oldest live message, if it may go out: due, or let go by a silent holder with attempts left."""
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
            lease = services.lease("executor", consumer="machine", scope_id=scope)
        ready = [pk for pk in map(self.deliverable, ["a", "b"] if scope is None else [scope]) if pk]
        oldest = min(ready, key=list(self.model).index, default=None)
        assert (lease.message.pk if lease else None) == oldest
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

    @rule(scope=SCOPES)
    def holders_fall_silent(self, scope: str) -> None:
        let_leases_run_out(self.tenant, scope_id=scope)
        for pk in self.live(scope):
            self.model[pk].expired = self.model[pk].state == "leased"

    @rule()
    def waits_pass(self) -> None:
        let_waits_pass(self.tenant)
        for row in self.model.values():
            row.due = True

    @rule()
    def sweep(self) -> None:
        with tenant_scope(self.tenant):
            services.sweep()
        for row in self.model.values():
            if row.state == "leased" and row.expired:
                self.fail(row, due=True)

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        if not hasattr(self, "tenant"):
            return
        with tenant_scope(self.tenant):
            rows = {row.pk: (row.state, row.attempts, row.fence) for row in QueueMessage.objects.all()}
        assert rows == {pk: (row.state, row.attempts, row.fence) for pk, row in self.model.items()}


def test_queue_under_any_order_of_words_behaves_as_its_model(database: None) -> None:
    run_state_machine_as_test(
        QueueMachine, settings=settings(max_examples=30, stateful_step_count=40, deadline=None, database=None)
    )

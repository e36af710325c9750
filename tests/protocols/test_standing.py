"""How a conversation stands while somebody decides: never as one that neither waits nor goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from apps.protocols import conversation
from kernel.tenancy import tenant_scope
from tests.factories.pauses import answer, asking_gate, converse, gated


def test_decision_between_two_reads_leaves_something_pending(
    deployment: Any, tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = gated(deployment, asking_gate("every_agent_response"))
    converse(session, "Hello")
    read = conversation.pending_count
    counts = []

    def decided_after_the_first_read(*args: Any) -> int:
        counts.append(read(*args))
        if len(counts) == 1:
            with ThreadPoolExecutor(1) as rival:
                rival.submit(answer, tenant, owner, "approve").result()
        return counts[-1]

    monkeypatch.setattr(conversation, "pending_count", decided_after_the_first_read)
    with tenant_scope(tenant):
        standing = conversation.standing_of(session.pk)
    assert counts == [0, 1]
    assert standing.cards == ()
    assert standing.is_pending

"""A report against which nothing speaks: judged here, looked after and written down by one call of the database.

The policy is remembered by its version, and the database says under the agent's lock whether that one is in force still
(ADR 67). Everything else than "go on" is `record_step`'s.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import told
from apps.safety.at_once_sql import EXECUTION, SEQ
from apps.safety.enums import Decision
from apps.safety.locks import known_as
from apps.safety.models import Execution
from apps.safety.queries import policy_said
from apps.safety.rules import decides, directive
from apps.safety.schemas import Policy, Principal, Success, Verdict
from apps.safety.services.executions import state_of
from apps.safety.services.steps import judged, verdict_of, words_of
from apps.safety.signals import loop_changed
from kernel.clock import now
from kernel.tenancy import current_tenant_id
from kernel.tenancy.scope import statement_scope

_MOST_REMEMBERED = 1024
# No policy has this version: the database writes nothing, and tells which is in force.
_NEVER_TOLD = (UUID(int=0), None)
# By tenant and principal: the version that was in force when it was last told, and what it says.
_remembered: dict[tuple[UUID, str], tuple[UUID | None, str | None]] = {}
_CALL = "SELECT safety_report_at_once(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


def record_step_at_once(
    tenant_id: UUID,
    principal: Principal,
    *,
    key: UUID | None,
    name: str,
    hint: str,
    description: str = "",
    outcome: str = "",
    execution_id: UUID | None = None,
) -> Success | None:
    """None: nothing has happened; ask `record_step`, once it is sure who asks. Opens its own transaction, so it stands
    in no scope. `key`: the API key by which `principal` was known a moment ago; whether it still stands is looked at
    with the rest. None where that is known."""
    said = {"hint": hint, "description": description, "outcome": outcome}
    with statement_scope(tenant_id):
        for _ in range(2):
            version, content = _remembered.get((tenant_id, principal.ref), _NEVER_TOLD)
            policy = policy_said(content)
            verdict = verdict_of(policy, hint, outcome)
            if version != _NEVER_TOLD[0] and not _goes_on(policy, verdict):
                _remembered.pop((tenant_id, principal.ref), None)  # it may say so no more
                return None
            agent = (key, principal.ref, known_as(name), execution_id)
            found = _found(agent, version, policy, verdict, said)
            if found is None:
                return None
            if "steps" in found:
                return _answer(found, policy, verdict)
            _remember(tenant_id, principal.ref, found)
    return None


def _goes_on(policy: Policy, verdict: Verdict | None) -> bool:
    return verdict is None or not decides(policy.mode) or verdict.decision is Decision.GO


def _found(
    agent: tuple[Any, ...], version: UUID | None, policy: Policy, verdict: Verdict | None, said: dict[str, str]
) -> dict[str, Any] | None:
    """What the database answers (`at_once_sql`)."""
    decision = Decision.GO
    step = {"id": str(uuid4()), **said, **words_of(policy.mode, verdict, decision)}
    step["factors"] = directive(policy.mode, verdict)["factors"]
    data = judged(SEQ, policy.mode, verdict, decision)
    entry = told(AuditEvent.SAFETY_JUDGED, actor=agent[1], subject=EXECUTION, data=data)
    most = policy.max_steps if verdict is not None else 0
    with connection.cursor() as cursor:
        cursor.execute(_CALL, [current_tenant_id(), *agent, now(), version, most, json.dumps(step), entry])
        answer = cursor.fetchone()[0]
    found: dict[str, Any] | None = json.loads(answer) if isinstance(answer, str) else answer
    return found


def _remember(tenant_id: UUID, ref: str, found: dict[str, Any]) -> None:
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    version = found["version"]
    _remembered[tenant_id, ref] = (version and UUID(version), found["content"])


def _answer(found: dict[str, Any], policy: Policy, verdict: Verdict | None) -> Success:
    execution = Execution(
        id=UUID(found["execution"]),
        steps=found["steps"],
        started_at=datetime.fromisoformat(found["started_at"]),
    )
    used = found["steps"] - found["granted_at"]
    left = max(0, policy.max_steps - used) if policy.max_steps else None
    loop_changed(False)
    told_it = directive(policy.mode, verdict, steps_remaining=left) | {"notifications": []}
    return Success(state_of(execution) | {"autonomy": told_it})

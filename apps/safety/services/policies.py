"""How does a policy change? By versions, each tried on recorded steps before it is written, if somebody wants to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import Decision
from apps.safety.models import PolicyVersion, Step
from apps.safety.queries import recent_steps, versions_of
from apps.safety.rules import evaluate
from apps.safety.schemas import Intended, Policy
from kernel.errors import NotFound, SilasError

MOST_TRIED = 500


@dataclass(frozen=True)
class Differs:
    """A recorded step that the tried policy would have answered otherwise."""

    step: Step
    now: Decision


@dataclass(frozen=True)
class Trial:
    read: int
    differing: tuple[Differs, ...]


def write_policy(
    content: dict[str, Any], *, principal: str = "", actor: str, note: str = "", seen: int | None = None
) -> PolicyVersion:
    """The next version, in force at once. `seen`: the newest number the writer knew. Raises 422 `policy_invalid`, 409
    `policy_changed`."""
    policy = policy_from(content)
    number = _newest_number(principal)
    if seen is not None and seen != number:
        raise _changed(number)
    row = PolicyVersion(
        principal=principal, number=number + 1, content=policy.stored(), written_by=actor, note=note[:200]
    )
    return _written(row, AuditEvent.SAFETY_POLICY_WRITTEN)


def take_back(principal: str, *, actor: str) -> PolicyVersion:
    """A principal's own policy ends: everybody's holds for it again, at once. A version too, so that what was said
    before can be said again. Raises 409 `policy_not_own`."""
    own = versions_of(principal).first() if principal else None
    if own is None or own.taken_back:
        raise SilasError("policy_not_own", "It has no policy of its own that could be taken back.", status=409)
    row = PolicyVersion(principal=principal, number=own.number + 1, content={}, taken_back=True, written_by=actor)
    return _written(row, AuditEvent.SAFETY_POLICY_TAKEN_BACK)


def _newest_number(principal: str) -> int:
    newest = versions_of(principal).first()
    return newest.number if newest else 0


def _written(row: PolicyVersion, event: AuditEvent) -> PolicyVersion:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise _changed(row.number) from None
    data = {"number": row.number, "principal": row.principal}
    record(event, actor=row.written_by, subject=f"safety_policy:{row.pk}", data=data)
    return row


def roll_back(number: int, *, principal: str = "", actor: str) -> PolicyVersion:
    """A new version that says what that one said. Raises `NotFound`."""
    old = versions_of(principal).filter(number=number).first()
    if old is None:
        raise NotFound("version")
    if old.taken_back:
        return take_back(principal, actor=actor)
    return write_policy(old.content, principal=principal, actor=actor)


def policy_from(content: dict[str, Any]) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SilasError("policy_invalid", f"{place}: {first['msg']}", status=422) from None


def try_policy(policy: Policy, *, principal: str = "", most: int = MOST_TRIED) -> Trial:
    """What the policy would have said of the newest recorded steps, of one principal or of all, by their hint and
    outcome; nothing is written."""
    steps = list(recent_steps(most, principal=principal))
    judged = [(step, evaluate(policy, Intended(step.hint, step.outcome)).decision) for step in steps]
    return Trial(len(steps), tuple(Differs(step, now) for step, now in judged if now != step.decision))


def _changed(number: int) -> SilasError:
    message = "Somebody changed this policy meanwhile. Look at it again."
    return SilasError("policy_changed", message, extra={"newest": number}, status=409)

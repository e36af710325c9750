"""Policy versions: write, withdraw, restore and backtest against recorded steps."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import Decision
from apps.safety.models import PolicyVersion, Step
from apps.safety.queries import recent_steps, versions_of
from apps.safety.rules.stages import evaluate
from apps.safety.schemas import Intended, Policy
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

MAX_BACKTEST_STEPS = 500


@dataclass(frozen=True)
class Difference:
    """A recorded step that the tested policy would have decided differently, as `now`."""

    step: Step
    now: Decision


@dataclass(frozen=True)
class Trial:
    """Result of a backtest: the number of steps read, and those that differ."""

    read: int
    differing: tuple[Difference, ...]


def write_policy(
    content: dict[str, object], *, principal: str = "", actor: str, note: str = "", seen: int | None = None
) -> PolicyVersion:
    """Write the next version, active at once. `seen`: the newest number that the writer knew.

    Raises 422 `policy_invalid`, 409 `policy_changed`.
    """
    policy = validate_policy(content)
    newest = versions_of(principal).first()
    number = newest.number if newest else 0
    if seen is not None and seen != number:
        raise _conflict(number)
    row = PolicyVersion(
        principal=principal, number=number + 1, content=policy.stored(), written_by=actor, note=note[:200]
    )
    return _insert(row, AuditEvent.SAFETY_POLICY_WRITTEN)


def withdraw_policy(principal: str, *, actor: str) -> PolicyVersion:
    """End a principal's own policy, so that the common one applies to it again at once.

    This writes a version too, so that earlier ones can be restored. Raises 409 `policy_not_own`.
    """
    own = versions_of(principal).first() if principal else None
    if own is None or own.taken_back:
        raise SilasError(ErrorCode.POLICY_NOT_OWN)
    row = PolicyVersion(principal=principal, number=own.number + 1, content={}, taken_back=True, written_by=actor)
    return _insert(row, AuditEvent.SAFETY_POLICY_TAKEN_BACK)


def _insert(row: PolicyVersion, event: AuditEvent) -> PolicyVersion:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise _conflict(row.number) from None
    data = {"number": row.number, "principal": row.principal}
    record(event, actor=row.written_by, subject=f"safety_policy:{row.pk}", data=data)
    return row


def restore_policy_version(number: int, *, principal: str = "", actor: str) -> PolicyVersion:
    """Write a new version with the content of an old one. Raises `NotFound`."""
    old = versions_of(principal).filter(number=number).first()
    if old is None:
        raise NotFound()
    if old.taken_back:
        return withdraw_policy(principal, actor=actor)
    return write_policy(old.content, principal=principal, actor=actor)


def validate_policy(content: dict[str, object]) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SilasError(ErrorCode.POLICY_INVALID, f"{place}: {first['msg']}") from None


def backtest_policy(policy: Policy, *, principal: str = "", most: int = MAX_BACKTEST_STEPS) -> Trial:
    """Evaluate the newest recorded steps, of one principal or of all, with this policy. Writes nothing.

    Only hint and outcome are evaluated; the step limit is not.
    """
    steps = list(recent_steps(most, principal=principal))
    decisions = [(step, evaluate(policy, Intended(step.hint, step.outcome)).decision) for step in steps]
    return Trial(len(steps), tuple(Difference(step, now) for step, now in decisions if now != step.decision))


def _conflict(number: int) -> SilasError:
    message = gettext("Someone else changed this policy. Review the new version and try again.")
    return SilasError(ErrorCode.POLICY_CHANGED, message, extra={"newest": number})

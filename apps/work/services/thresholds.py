"""Change how many cards a family of actions needs: widened by a spent approval for exactly that, tightened by one
press.

Always holds: a change is one new row; a widening one is verified here and refused when the numbers have moved since it
was proposed, when it exceeds a hard cap, or when the actions are irreversible; tightening needs no approval, because it
only brings more before people. Nothing here affects a gate or an approval (spec 5.1.6, 5.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken
from apps.approvals.tokens.payloads import approvable
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Capability
from apps.tenants.models import Deployment, User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from apps.work.confidence import MAX_BATCH, MIN_EARNED_HIGH, Thresholds, is_wider, stricter_of
from apps.work.enums import Direction
from apps.work.models import ThresholdChange
from apps.work.queries import change_of, thresholds_of
from kernel.errors import NotFound

SIZE, HIGH = "batch_review.default_size", "batch_review.confidence.high_min"
TIGHTENERS = roles_with(Capability.DECIDE)
_STEP_SIZE, _STEP_HIGH = 5, 0.05
_FAMILY = "family:"


def payload_scope(deployment_id: UUID, family: str) -> dict[str, str]:
    """Return the fields by which a proposal names its deployment and family of actions."""
    return {"scope_id": str(deployment_id), "goal_id": f"{_FAMILY}{family}"}


def current(deployment_id: UUID, family: str) -> Thresholds:
    """The thresholds that apply now."""
    own, change = thresholds_of(deployment_id), change_of(deployment_id, family)
    return own if change is None else change.thresholds(own)


def step(deployment_id: UUID, family: str, direction: Direction) -> Thresholds:
    """The thresholds one step further in that direction; unchanged when a cap is reached."""
    now, own = current(deployment_id, family), thresholds_of(deployment_id)
    if direction is Direction.TIGHTEN:
        return _tighter(now, own)
    floor = max(MIN_EARNED_HIGH, own.medium_min)
    high = now.high_min if now.high_min <= floor else max(floor, round(now.high_min - _STEP_HIGH, 4))
    return replace(now, size=max(now.size, min(now.size + _STEP_SIZE, MAX_BATCH)), high_min=high)


def changes(before: Thresholds, after: Thresholds) -> list[dict[str, str]]:
    """Return the exact ordered changes, as a card shows and an approval binds them; empty if nothing changes."""
    pairs: list[tuple[str, float, float]] = [(SIZE, before.size, after.size), (HIGH, before.high_min, after.high_min)]
    return [
        {
            "key": key,
            "current_value": f"{old:g}",
            "proposed_value": f"{new:g}",
            "direction": (Direction.WIDEN if (new > old) is (key == SIZE) else Direction.TIGHTEN).value,
        }
        for key, old, new in pairs
        if old != new
    ]


def apply(payload: Mapping[str, Any], token: ApprovalToken, *, user: User) -> ThresholdChange | None:
    """Make the approved change, in the transaction of the decision; None when it is no longer valid, which is audited.
    Spends the approval either way."""
    deployment, family = _lock(UUID(payload["scope_id"])), str(payload["goal_id"]).removeprefix(_FAMILY)
    verdict = verify_token(token, approvable(ApprovalScope.AUTONOMY_THRESHOLD, payload))
    before = current(deployment.pk, family)
    after = _after_changes(before, payload["changes"])
    fault = "" if verdict.ok else verdict.reason.value
    # The card showed values before and after; if they have moved since, this step was not approved.
    if after is None or changes(before, after) != [dict(change_) for change_ in payload["changes"]]:
        fault = fault or "stale"
    elif after.high_min < min(MIN_EARNED_HIGH, before.high_min):
        fault = fault or "beyond_cap"
    if fault or after is None:
        record(AuditEvent.THRESHOLDS_REFUSED, subject=f"deployment:{deployment.pk}", data={"reason": fault})
        return None
    return _write(deployment, family, before, after, user=user, token=token)


def tighten(deployment_id: UUID, family: str, *, user: User) -> ThresholdChange | None:
    """Drop what was earned; if nothing was, tighten by one step. None at the strictest setting.

    Raises `SilasError` forbidden_role 403, `NotFound`.
    """
    require_role(user, TIGHTENERS)
    deployment = _lock(deployment_id)
    before = current(deployment.pk, family)
    after = _tighter(before, thresholds_of(deployment.pk))
    return None if after == before else _write(deployment, family, before, after, user=user, token=None)


def _tighter(now: Thresholds, usual: Thresholds) -> Thresholds:
    if is_wider(now, usual):
        return stricter_of(now, usual)
    return replace(now, size=max(1, now.size - _STEP_SIZE), high_min=min(1.0, round(now.high_min + _STEP_HIGH, 4)))


def _after_changes(before: Thresholds, changes_: list[Mapping[str, str]]) -> Thresholds | None:
    """Return the thresholds after these changes; None if a value is not valid."""
    values = {change["key"]: change["proposed_value"] for change in changes_}
    try:
        size, high = int(values.get(SIZE, before.size)), float(values.get(HIGH, before.high_min))
        return Thresholds(high, min(before.medium_min, high), size)
    except ValueError:
        return None


def _lock(deployment_id: UUID) -> Deployment:
    """Serialize changes of one deployment."""
    rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment: Deployment | None = rows.filter(pk=deployment_id).first()
    if deployment is None:
        raise NotFound()
    return deployment


def _write(
    deployment: Deployment,
    family: str,
    before: Thresholds,
    after: Thresholds,
    *,
    user: User,
    token: ApprovalToken | None,
) -> ThresholdChange:
    usual, mine = thresholds_of(deployment.pk), ThresholdChange.objects.filter(deployment=deployment, family=family)
    direction = Direction.WIDEN if is_wider(after, before) else Direction.TIGHTEN
    change: ThresholdChange = ThresholdChange.objects.create(
        deployment=deployment,
        family=family,
        number=mine.count() + 1,
        direction=direction,
        usual_size=usual.size,
        usual_high=usual.high_min,
        size_before=before.size,
        size_after=after.size,
        high_before=before.high_min,
        high_after=after.high_min,
        approval_token=token,
        user=user,
    )
    record(
        AuditEvent.THRESHOLDS_CHANGED,
        actor=f"user:{user.pk}",
        subject=f"deployment:{deployment.pk}",
        data={
            "change": str(change.pk),
            "direction": direction.value,
            "size": after.size,
            "high": f"{after.high_min:g}",
        },
    )
    return change

"""Create, change and delete SLA policies. Only those who may administer change them.

A change holds for the clocks that run and those that start from then on; what has ended stays as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox.enums import SlaTarget
from apps.inbox.models import SlaMoment, SlaPolicy, Team
from apps.inbox.sla_tracking import enqueue_refresh_of_all
from apps.inbox.staff import Staff, require_administrator
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.named_rows import require_room, save_named, sound_name

# A year is the longest target.
MAX_NAME, MAX_POLICIES, MAX_MINUTES, MAX_POSITION = 60, 50, 366 * 24 * 60, 1000


@dataclass(frozen=True)
class PolicyFields:
    """What a person says of a policy. Targets are minutes; `teams` and `deployments` are ids, none for all."""

    name: str
    first_reply: int | None = None
    next_reply: int | None = None
    resolution: int | None = None
    in_opening_hours: bool = True
    teams: Collection[str] = ()
    deployments: Collection[str] = ()
    position: int = 1


def sla_policies() -> list[SlaPolicy]:
    """All policies in their order."""
    return list(SlaPolicy.objects.all())


def sla_policy(policy_id: UUID) -> SlaPolicy:
    """Raises `NotFound` for an unknown or foreign id."""
    policy: SlaPolicy | None = SlaPolicy.objects.filter(pk=policy_id).first()
    if policy is None:
        raise NotFound()
    return policy


def lock_policy(by: Staff, policy_id: UUID) -> SlaPolicy:
    """The policy, locked for a change by who may make it. Raises `NotFound`, 403 `forbidden_role`."""
    require_administrator(by)
    rows = SlaPolicy.objects.select_for_update(of=("self",), no_key=True)
    policy: SlaPolicy | None = rows.filter(pk=policy_id).first()
    if policy is None:
        raise NotFound()
    return policy


def fields_of(policy: SlaPolicy) -> PolicyFields:
    return PolicyFields(
        name=policy.name,
        first_reply=policy.first_reply,
        next_reply=policy.next_reply,
        resolution=policy.resolution,
        in_opening_hours=policy.in_opening_hours,
        teams=policy.teams,
        deployments=policy.deployments,
        position=policy.position,
    )


def save_policy(by: Staff, fields: PolicyFields, *, policy_id: UUID | None = None) -> SlaPolicy:
    """A new policy, or the one with this id as it is from now on. Raises 400 `bad_name` and `bad_sla_policy`, 409
    `name_taken` and `too_many`."""
    require_administrator(by)
    policy = lock_policy(by, policy_id) if policy_id else _new()
    policy.name = sound_name(fields.name, MAX_NAME)
    policy.first_reply, policy.next_reply, policy.resolution = _sound_targets(fields)
    if not 1 <= fields.position <= MAX_POSITION:
        raise _bad_policy(gettext("The order must be between 1 and {most}.").format(most=MAX_POSITION))
    teams, chatbots = Team.objects.values_list("pk", flat=True), Deployment.objects.values_list("pk", flat=True)
    policy.teams = _sound_ids(fields.teams, teams, kept=policy.teams)
    policy.deployments = _sound_ids(fields.deployments, chatbots, kept=policy.deployments)
    policy.position, policy.in_opening_hours, policy.changed_at = fields.position, fields.in_opening_hours, now()
    save_named(policy)
    data = {target.value: getattr(policy, target) for target in SlaTarget}
    record(AuditEvent.SLA_POLICY_SAVED, actor=by.actor, subject=f"sla_policy:{policy.pk}", data=data)
    enqueue_refresh_of_all()
    return policy


def delete_policy(by: Staff, policy_id: UUID) -> None:
    """Its clocks end as cancelled, unless another policy holds; what was met or missed stays counted."""
    lock_policy(by, policy_id).delete()
    record(AuditEvent.SLA_POLICY_DELETED, actor=by.actor, subject=f"sla_policy:{policy_id}")
    enqueue_refresh_of_all()
    if not SlaPolicy.objects.exists():
        # Without a policy nothing is written down, so that a later one must not build on what is left.
        SlaMoment.objects.all().delete()


def is_orphan(policy: SlaPolicy, teams: Collection[str], chatbots: Collection[str]) -> bool:
    """True if the policy holds for nothing, because all its teams or all its chatbots were deleted."""
    return any(
        ids and not set(ids) & set(known) for ids, known in ((policy.teams, teams), (policy.deployments, chatbots))
    )


def _new() -> SlaPolicy:
    require_room(SlaPolicy.objects.all(), MAX_POLICIES)
    return SlaPolicy()


def _sound_targets(fields: PolicyFields) -> tuple[int | None, int | None, int | None]:
    targets = (fields.first_reply, fields.next_reply, fields.resolution)
    if not any(targets):
        raise _bad_policy(gettext("Set at least one time."))
    if any(minutes is not None and not 1 <= minutes <= MAX_MINUTES for minutes in targets):
        raise _bad_policy(gettext("A time must be between 1 and {most} minutes.").format(most=MAX_MINUTES))
    return targets


def _sound_ids(given: Collection[str], known: Iterable[UUID], *, kept: Collection[str]) -> list[str]:
    """The ids in order, once each. What was deleted since may stay as it is."""
    allowed = {str(one) for one in known} | set(kept)
    if not set(given) <= allowed:
        raise _bad_policy(gettext("Choose teams and chatbots of your company."))
    return sorted(set(given))


def _bad_policy(message: str) -> SilasError:
    return SilasError(ErrorCode.BAD_SLA_POLICY, message)

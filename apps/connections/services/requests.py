"""Request a connection or more access to one, and start its set-up after an approval. In web processes, inside the
caller's scope.

An approval binds the permissions before and after, and in the operation the exact files of the skill, the way of
signing in and a hash of the settings. It is spent once, in the transaction that decides; a connection whose skill or
settings have changed by then is not set up (spec 5.10.1, 5.11; contract silas 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from apps.approvals.cards.schemas import Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.queries import open_cards_about
from apps.approvals.tokens import payloads
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.connections import rules
from apps.connections.enums import ConnectionStatus, Purpose, Script, SetupState
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, OnceGrant, SetupRun
from apps.connections.schemas import NewConnection
from apps.connections.scripts import scripts_of
from apps.connections.services.status import change_status
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from apps.tenants import vault
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.schedules import next_due
from kernel.stored_texts import stored_text

CONNECTION = "connection"
NO_PERMISSION = stored_text("no particular permission")
SETUP_TIME = timedelta(minutes=30)
_ONE_TIME_GRANT_LASTS = timedelta(hours=1)
_NO_DELAY = timedelta()
_MOST_SETTINGS = 40


def request_connection(
    wanted: NewConnection, *, user: User | None = None, actor: str, callback: str = ""
) -> tuple[Connection, Card | None]:
    """Create a proposed connection and open the card that asks for its approval; the card comes later where the skill's
    `discover.py` has to run first. Raises `SilasError`: `skill_missing` 409, `not_a_connection`, `permission_unknown`,
    `bad_schedule`, 403 for a member who may not decide."""
    if user is not None:
        require_role(user, roles_with(Capability.DECIDE))
    next_due(wanted.health_check, after=now(), zone="UTC")  # raises `bad_schedule`
    version, manifest = _connection_skill(wanted.skill)
    assert manifest.auth_strategy is not None  # a skill without one connects nothing
    permissions = _requested_permissions(wanted, manifest)
    # Here, because the worker that stores the first secret may create no data key.
    vault.ensure_key()
    row: Connection = Connection.objects.create(
        name=wanted.name,
        domain=wanted.domain,
        skill=skill_rules.reference(version.name, version.digest),
        skill_name=version.name,
        auth_strategy=manifest.auth_strategy,
        permissions_available=list(manifest.available_permissions),
        initial_permissions=permissions,
        settings=dict(wanted.settings),
        health_check=wanted.health_check,
        requested_by=actor,
        callback=callback,
    )
    record(AuditEvent.CONNECTION_PROPOSED, actor=actor, subject=f"connection:{row.pk}", data={"skill": row.skill_name})
    if Script.DISCOVER.value not in scripts_of(version):
        return row, open_connection_card(row)
    start_discovery(row)
    return row, None


def start_discovery(row: Connection) -> None:
    """Have a worker find out how the skill would sign in; the card follows."""
    row.discovering, row.failure = True, None
    change_status(row, ConnectionStatus.PROPOSED, "discovering", "failure")
    bus.enqueue(Kind.CONNECTION_DISCOVERY, scope_id=row.pk)


def _connection_skill(ref: str) -> tuple[SkillVersion, SkillManifest]:
    """Return the connection skill of this reference. A reference to an outside tool server names no skill."""
    for version in skills.versions([ref]):
        manifest = SkillManifest.model_validate(version.manifest)
        if manifest.type == "connection":
            return version, manifest
    raise SilasError(ErrorCode.NOT_A_CONNECTION)


def _requested_permissions(wanted: NewConnection, manifest: SkillManifest) -> list[str]:
    """Return the permissions to ask for: those the skill starts with, unless others that it knows are requested."""
    known = {*manifest.initial_permissions, *manifest.available_permissions}
    permissions = list(manifest.initial_permissions) if wanted.permissions is None else wanted.permissions
    if set(permissions) - known:
        raise SilasError(ErrorCode.PERMISSION_UNKNOWN, gettext("The skill doesn't know this permission."))
    return list(dict.fromkeys(permissions))


def open_connection_card(row: Connection) -> Card | None:
    """Open the card about a proposed connection; None while one is open, or when it is no longer proposed."""
    waiting = open_cards_about(row.pk, CONNECTION).filter(kind=CardKind.CONNECTION)
    if row.status != ConnectionStatus.PROPOSED or row.discovering or waiting.exists():
        return None
    permissions: list[str] = list(row.initial_permissions)
    return open_card(
        CardKind.CONNECTION,
        subject=CardSubject(CONNECTION, row.pk),
        binding=Binding(
            ApprovalScope.CONNECTION_MANAGE, approval_payload(row, Purpose.SETUP, permissions), reversible=True
        ),
        text=CardText(
            intent=stored_text("Connect {account}").format(account=row.name),
            rationale=stored_text("The skill {skill} will sign in and ask for {permissions}.").format(
                skill=row.skill_name, permissions=_listed(permissions)
            ),
            consequence={
                "approve": stored_text("Start connecting {account}").format(account=row.name)[:150],
                "decline": stored_text("Nothing is connected"),
            },
            facts=[Fact(stored_text("Permissions"), text=_listed(permissions)), *_setting_facts(row)],
        ),
        body={
            "service": row.skill_name,
            "provider": row.provider,
            "skill": row.skill_name,
            "auth_strategy": row.auth_strategy,
        },
    )


def _setting_facts(row: Connection) -> list[Fact]:
    facts = [Fact(name, text=str(value)) for name, value in sorted(row.settings.items())]
    left = len(facts) - _MOST_SETTINGS
    return (
        facts
        if left <= 0
        else [
            *facts[:_MOST_SETTINGS],
            Fact(stored_text("Not shown"), text=stored_text("{count:d} more settings").format(count=left)),
        ]
    )


def _listed(permissions: Sequence[str]) -> str:
    return ", ".join(permissions) or NO_PERMISSION


def approval_payload(row: Connection, purpose: Purpose, after: Sequence[str]) -> dict[str, object]:
    """Return what an approval of this binds, as the connection is now."""
    operation = rules.operation(purpose.value, skill=row.skill, strategy=row.auth_strategy, settings=dict(row.settings))
    before = list(row.permissions_granted)
    # A service without permissions of its own is used or not used at all.
    return {"connection_id": str(row.pk), "operation": operation, "before": before, "after": list(after) or ["use"]}


def apply_connection_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Set up the connection, or remove the proposed one. In the transaction that decides."""
    row = lock_connection(card.subject_id)
    if token is not None:
        _begin_setup(card, row, Purpose.SETUP, token)
    elif row.status == ConnectionStatus.PROPOSED:
        change_status(row, ConnectionStatus.REMOVED, reason="declined")


def apply_escalation_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Sign in again for more access, or grant it for one call. In the transaction that decides."""
    row = lock_connection(card.subject_id)
    if token is None:
        return
    if decision.said.get("choice") != "just_this_once":
        _begin_setup(card, row, Purpose.WIDEN, token)
    elif _is_as_shown(card, row, Purpose.WIDEN):
        # The token is spent by the one call that uses the grant (`permissions`).
        OnceGrant.objects.create(
            connection=row,
            permissions=rules.missing(card.payload["after"], row.permissions_granted),
            payload=card.payload,
            token_id=token.pk,
            expires_at=min(token.expires_at, now() + _ONE_TIME_GRANT_LASTS),
        )


def _begin_setup(card: Card, row: Connection, purpose: Purpose, token: ApprovalToken) -> None:
    bound = payloads.approvable(ApprovalScope.CONNECTION_MANAGE, card.payload)
    if _is_as_shown(card, row, purpose) and verify_token(token, bound).ok:
        start_setup(row, purpose, _permissions_after(card), actor=f"user:{token.decision.user_id}", card=card)


def _permissions_after(card: Card) -> list[str]:
    return [name for name in card.payload["after"] if name != "use"]


def _is_as_shown(card: Card, row: Connection, purpose: Purpose) -> bool:
    """True if the connection is as the card showed it; a refusal is recorded."""
    if approval_payload(row, purpose, _permissions_after(card)) == card.payload:
        return True
    record(AuditEvent.CONNECTION_REFUSED, subject=f"connection:{row.pk}", data={"reason": "changed_since"})
    return False


def start_setup(
    row: Connection,
    purpose: Purpose,
    permissions: Sequence[str],
    *,
    actor: str,
    card: Card | None = None,
    later: timedelta = _NO_DELAY,
) -> SetupRun:
    """Create a set-up for a worker to hold, not before `later` has passed. Raises `setup_under_way` 409 while another
    one is under way."""
    if SetupRun.objects.filter(connection=row, state__in=rules.UNDER_WAY).exists():
        raise SilasError(ErrorCode.SETUP_UNDER_WAY)
    if row.status in (ConnectionStatus.PROPOSED, ConnectionStatus.FAILED):
        change_status(row, ConnectionStatus.CONNECTING, actor=actor)
    setup: SetupRun = SetupRun.objects.create(
        connection=row,
        purpose=purpose,
        state=SetupState.WAITING,
        wanted=list(permissions),
        started_by=actor,
        card_id=card.pk if card else None,
        begins_at=now() + later if later else None,
        deadline=now() + later + SETUP_TIME,
    )
    bus.enqueue(
        Kind.CONNECTION_SETUP, scope_id=setup.pk, message_id=f"connection_setup:{setup.pk}", due_at=setup.begins_at
    )
    return setup


def reconnect(
    connection_id: UUID,
    *,
    actor: str,
    user: User | None = None,
    permissions: Sequence[str] | None = None,
    later: timedelta = _NO_DELAY,
) -> SetupRun:
    """Sign in again with the permissions that were approved before, or fewer of them; no new approval is needed.

    Raises `SilasError`: `not_approved` 409 for one that was never approved, `permission_unknown`, `setup_under_way`.
    """
    if user is not None:
        require_role(user, roles_with(Capability.DECIDE))
    row = lock_connection(connection_id)
    approved = list(row.permissions_granted) or list(row.initial_permissions)
    if not SetupRun.objects.filter(connection=row).exists():
        raise SilasError(ErrorCode.NOT_APPROVED, gettext("This connection has not been approved yet."))
    requested = approved if permissions is None else list(permissions)
    if set(requested) - set(approved):
        raise SilasError(
            ErrorCode.PERMISSION_UNKNOWN, gettext("Additional permissions need a new approval."), status=409
        )
    return start_setup(row, Purpose.RECONNECT, requested, actor=actor, later=later)


def open_escalation_card(row: Connection, wanted: Sequence[str], reason: str) -> Card | None:
    """Open a card that asks for more access: approve, just this once, or decline (spec 5.10.2). None when nothing is
    missing or a card is open. Raises `permission_unknown`."""
    if set(wanted) - {*row.permissions_available, *row.permissions_granted, *row.initial_permissions}:
        raise SilasError(ErrorCode.PERMISSION_UNKNOWN, gettext("The skill doesn't know this permission."))
    missing = rules.missing(wanted, row.permissions_granted)
    waiting = open_cards_about(row.pk, CONNECTION).filter(kind=CardKind.PERMISSION_ESCALATION)
    if not missing or waiting.exists():
        return None
    after = [*row.permissions_granted, *missing]
    return open_card(
        CardKind.PERMISSION_ESCALATION,
        subject=CardSubject(CONNECTION, row.pk),
        binding=Binding(
            ApprovalScope.CONNECTION_MANAGE,
            approval_payload(row, Purpose.WIDEN, after),
            reversible=True,
            max_executions=1,
        ),
        text=CardText(
            intent=stored_text("Give {account} more access: {permissions}").format(
                account=row.name, permissions=_listed(missing)
            ),
            rationale=reason,
            consequence={
                "approve": stored_text("Sign in again and allow {permissions}").format(permissions=_listed(missing))[
                    :150
                ],
                "just_this_once": stored_text("Allow it for one use only"),
                "decline": stored_text("Access stays as it is, and the action fails"),
            },
            facts=[Fact(stored_text("Permissions"), before=_listed(row.permissions_granted), after=_listed(after))],
        ),
        body={"connection_name": row.name, "reason": reason},
    )

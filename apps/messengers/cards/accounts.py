"""Link members to their accounts in channels, and set which channels bring cards. Inside the tenant's scope.

Linking an account takes both sides: a one-time code that the logged-in member sees, sent from the account.
Links and the policy are certified with the installation key, so that rows which are merely written decide nothing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils.crypto import constant_time_compare, salted_hmac

from apps.approvals.cards.lifecycle import require_approver
from apps.approvals.rules import APPROVING_ROLES
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.contacts.enums import Proof
from apps.messengers import ports
from apps.messengers.models import MOST_DAYS, AccountCode, ApproverAccount, CardPolicy, Channel
from apps.messengers.ports import Inbound
from apps.tenants.enums import Role
from apps.tenants.models import Membership, User
from apps.tenants.queries import require_role, role_of
from kernel import trust
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id

EMAIL = "email"
CODE_LASTS = timedelta(minutes=10)
_ACCOUNT, _POLICY = "approver_account", "card_policy"
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_CODE = re.compile(r"\s*link-([a-z2-9]{4})-([a-z2-9]{4})-([a-z2-9]{4})\s*", re.IGNORECASE)


def policy() -> CardPolicy | None:
    """The tenant's policy if it is on and certified."""
    row = CardPolicy.objects.filter(enabled=True).first()
    return row if row and trust.is_certified(_POLICY, _policy_fields(row), row.certificate) else None


def set_policy(
    by: User | None,
    *,
    actor: str = "",
    enabled: bool,
    channels: Sequence[str],
    people: Sequence[str],
    decide_in_place: bool,
    verified_days: int,
    versions: Collection[str] = (),
) -> CardPolicy:
    """Set which channels bring cards to whom. Owners only; `by` None for an API key, which `actor` names.

    Raises `SilasError`: `forbidden_role` 403; `channel_settings` 400 with the problem of each field; 412
    `changed_meanwhile`.
    """
    if by is not None:
        require_role(by, {Role.OWNER})
    problems = _problems(channels, people, verified_days)
    if problems:
        raise SilasError(ErrorCode.CHANNEL_SETTINGS, extra={"fields": problems})
    # Of two first saves at once the second inserts nothing and waits for the lock below.
    CardPolicy.objects.bulk_create([CardPolicy()], ignore_conflicts=True)
    row: CardPolicy = CardPolicy.objects.select_for_update(of=("self",), no_key=True).get()
    if versions and str(row.version) not in versions:
        raise SilasError(ErrorCode.CHANGED_MEANWHILE)
    row.enabled, row.decide_in_place, row.verified_days = enabled, decide_in_place, verified_days
    row.channels, row.people, row.version = list(dict.fromkeys(channels)), list(dict.fromkeys(people)), row.version + 1
    row.certificate = trust.certify(_POLICY, _policy_fields(row))
    row.save()
    told = {"enabled": enabled, "in_place": decide_in_place, "channels": len(row.channels), "people": len(row.people)}
    record(AuditEvent.CARD_CHANNELS_SET, actor=actor or (by.actor if by else ""), data=told)
    return row


def saved_policy() -> CardPolicy:
    """The policy as an owner saved it, on or off; the defaults where none was saved."""
    return CardPolicy.objects.first() or CardPolicy()


def create_code(user: User) -> str:
    """A code that links the account from which it is sent within ten minutes; one made before is void. Raises
    `SilasError("approver_required")` 403."""
    require_approver(user)
    code = "LINK-" + "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(3))
    values = {"hashed": _hashed(user.pk, code), "expires_at": now() + CODE_LASTS}
    AccountCode.objects.update_or_create(user=user, defaults=values)
    return code


def is_code(text: str) -> bool:
    return _CODE.fullmatch(text) is not None


def link(channel: Channel, message: Inbound) -> ApproverAccount | None:
    """Link the sender's account to the member whose code the message is, in place of what was linked before on either
    side. None where the code is not valid (any more), or the channel does not vouch for its senders."""
    adapter = ports.adapter_of(channel.kind)
    if not adapter.carries_cards or adapter.proof != Proof.PROVIDER or not message.sender:
        return None
    code = _code_of(message.text)
    # Deleted before it is used: of two accounts that send it at once only one is linked.
    if code is None or not AccountCode.objects.filter(pk=code.pk).delete()[0]:
        return None
    if role_of(code.user) not in APPROVING_ROLES:
        return None
    accounts = ApproverAccount.objects.filter(channel=channel)
    before = accounts.filter(user=code.user, account=message.sender).first()
    accounts.filter(user=code.user).delete()
    accounts.filter(account=message.sender).delete()
    moment = now()
    row = ApproverAccount(
        user=code.user,
        channel=channel,
        account=message.sender,
        name=message.name,
        linked_at=before.linked_at if before else moment,
        last_verified_at=moment,
    )
    row.certificate = certificate_of(row)
    row.save(force_insert=True)
    _record(AuditEvent.APPROVER_ACCOUNT_LINKED, row)
    return row


def unlink(account_id: UUID, *, user: User) -> None:
    """Remove one of the user's accounts. Raises `NotFound` for another user's."""
    row = accounts_of(user).filter(pk=account_id).first()
    if row is None:
        raise NotFound()
    row.delete()
    _record(AuditEvent.APPROVER_ACCOUNT_REMOVED, row)


def accounts_of(user: User) -> QuerySet[ApproverAccount]:
    rows: QuerySet[ApproverAccount] = ApproverAccount.objects.select_related("channel").filter(user=user)
    return rows


def certificate_of(row: ApproverAccount) -> str:
    """Raises `SilasError("signing_key_missing")` in a process that may not sign."""
    return trust.certify(_ACCOUNT, _account_fields(row))


def is_certified(row: ApproverAccount) -> bool:
    return trust.is_certified(_ACCOUNT, _account_fields(row), row.certificate)


def is_recent(row: ApproverAccount, rule: CardPolicy, moment: datetime) -> bool:
    """Whether the member proved lately enough that the account is theirs."""
    return is_certified(row) and row.last_verified_at > moment - timedelta(days=rule.verified_days)


def _code_of(text: str) -> AccountCode | None:
    found = _CODE.fullmatch(text)
    if found is None:
        return None
    code = "LINK-" + "-".join(found.groups()).upper()
    # The hash is keyed by the member, so that each waiting code is tried; compared in constant time.
    waiting = AccountCode.objects.select_related("user").filter(expires_at__gt=now())
    return next((row for row in waiting if constant_time_compare(row.hashed, _hashed(row.user_id, code))), None)


def _hashed(user_id: UUID, code: str) -> str:
    return salted_hmac("messengers.account_code", f"{user_id}:{code}", algorithm="sha256").hexdigest()


def _problems(channels: Sequence[str], people: Sequence[str], verified_days: int) -> dict[str, str]:
    rows = Channel.objects.filter(removed_at=None)
    fitting = {str(row.pk) for row in rows if ports.adapter_of(row.kind).carries_cards} | {EMAIL}
    members = Membership.objects.filter(role__in=APPROVING_ROLES).values_list("user_id", flat=True)
    problems = {}
    if not set(channels) <= fitting:
        problems["channels"] = "unknown"
    if not set(people) <= set(map(str, members)):
        problems["people"] = "unknown"
    if not 1 <= verified_days <= MOST_DAYS:
        problems["verified_days"] = "range"
    return problems


def _policy_fields(row: CardPolicy) -> dict[str, object]:
    names = ("enabled", "channels", "people", "decide_in_place", "verified_days", "version")
    return {"tenant": str(current_tenant_id()), **{name: getattr(row, name) for name in names}}


def _account_fields(row: ApproverAccount) -> Mapping[str, object]:
    return {
        "tenant": str(current_tenant_id()),
        "user": str(row.user_id),
        "channel": str(row.channel_id),
        "account": row.account,
        "verified_at": row.last_verified_at.isoformat(),
    }


def _record(event: AuditEvent, row: ApproverAccount) -> None:
    data = {"channel": str(row.channel_id), "kind": row.channel.kind, "account": row.account}
    record(event, actor=row.user.actor, subject=f"user:{row.user_id}", data=data)

"""What waits for a decision, and how often was a token used? Read inside a tenant scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from pydantic import ValidationError

from apps.approvals import rules
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardStatus, Deciders, Pace, Risk, Standing
from apps.approvals.kinds import AWAITED, kind_of
from apps.approvals.models import (
    WAITING,
    Answer,
    ApprovalPolicy,
    ApprovalToken,
    ApproverKey,
    Card,
    CardTiming,
    Passkey,
    TokenRevocation,
    TokenUse,
)
from apps.approvals.schemas import Approvable, Asked, KeyFacts, Policy, SignedToken, TokenFacts, Yes
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Membership
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id


def open_cards(*, deployment_id: UUID | None = None) -> QuerySet[Card]:
    """Cards that can still be decided, with their deployment: those that somebody waits for in a conversation, then
    those that somebody asked elsewhere, then the rest, oldest first."""
    waiting = Card.objects.filter(status__in=WAITING, expires_at__gt=now()).select_related("deployment", "assignee")
    in_conversation = When(kind__in=AWAITED, session_id__isnull=False, then=0)
    turns = Case(in_conversation, When(kind__in=AWAITED, then=1), default=2)
    cards: QuerySet[Card] = waiting.order_by(turns, "created_at")
    return cards.filter(deployment_id=deployment_id) if deployment_id else cards


def waiting_about(subject_id: UUID, *subject_kinds: str) -> QuerySet[Card]:
    """Cards about this subject that nobody has settled yet, those whose time has just run out included."""
    cards: QuerySet[Card] = Card.objects.filter(subject_id=subject_id, subject_kind__in=subject_kinds)
    return cards.filter(status__in=WAITING)


def open_count() -> int:
    return open_cards().count()


def card(card_id: UUID) -> Card:
    """One card with its decision and who made it, if any. Raises `NotFound` for an unknown or foreign id."""
    found: Card | None = (
        Card.objects.select_related("deployment", "assignee", "decision__user").filter(pk=card_id).first()
    )
    if found is None:
        raise NotFound("card")
    return found


def patience(pace: Pace, deployment_id: UUID | None) -> int:
    """How many seconds a card of this pace waits: as the deployment says, else the tenant, else the installation."""
    rows = CardTiming.objects.filter(Q(deployment_id=deployment_id) | Q(deployment=None), pace=pace)
    said = dict(rows.values_list("deployment_id", "seconds"))
    return int(said.get(deployment_id) or said.get(None) or settings.CARD_SECONDS[pace])


def policy_for(card: Card) -> Policy:
    """What the tenant asks of a yes to this card: the row that fits it best, or what holds without any."""
    return _policy_at(card.scope, card.risk)


def passkey_wanted(risk: Risk, user: Any) -> bool:
    """Does this person's press about something that is no card, of this risk, need a passkey? By the rows of policy
    that name no kind of approval."""
    return rules.wants_passkey(_policy_at("", risk), risk, has_one=has_passkey(user))


def passkey_required(risk: Risk) -> bool:
    """Does nobody's press of this risk count without a passkey?"""
    return rules.wants_passkey(_policy_at("", risk), risk, has_one=False)


def _policy_at(scope: str, risk: str) -> Policy:
    """The strictest there is where the rows are not the ones that were put in force."""
    rows = _certified_policies()
    if rows is None:
        return rules.STRICTEST
    fitting = [sealed_policy(row) for row in rows if row.scope in ("", scope) and row.risk in ("", risk)]
    return rules.best_policy([Policy(**fields) for fields in fitting])


def require_certified_policy() -> None:
    """Raises `SilasError("policy_not_certified")` 409 when nobody can say who may approve here."""
    if _certified_policies() is None:
        raise policy_seals.not_certified_error(PolicyKind.APPROVALS)


def sealed_policy(row: ApprovalPolicy) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Policy.model_fields}


def sealed_policies() -> dict[str, dict[str, Any]]:
    """What the rows say in this tenant, for `manage.py certify`."""
    return {str(row.pk): sealed_policy(row) for row in ApprovalPolicy.objects.all()}


def _certified_policies() -> list[ApprovalPolicy] | None:
    """All rows of the tenant, when they are exactly those that were put in force; a missing one counts, because a
    stricter row that is gone would leave a weaker one."""
    sealed = policy_seals.load_items(PolicyKind.APPROVALS)
    rows = list(ApprovalPolicy.objects.all())
    if sealed is None:
        return None
    if dict(sealed) != {str(row.pk): policy_seals.digest(sealed_policy(row)) for row in rows}:
        policy_seals.report_untrusted(PolicyKind.APPROVALS, "rows", "forged")
        return None
    return rows


def passkeys_of(user: Any, *, rp_id: str = "") -> list[Passkey]:
    """The person's passkeys that are in use, oldest first; with `rp_id` those that work at this address."""
    mine = Passkey.objects.filter(user=user, removed_at=None)
    return list(mine.filter(rp_id=rp_id) if rp_id else mine)


def has_passkey(user: Any) -> bool:
    return bool(Passkey.objects.filter(user=user, removed_at=None).exists())


def active_key(user: Any) -> ApproverKey | None:
    """The key the person signs with; None before their first yes."""
    found: ApproverKey | None = ApproverKey.objects.filter(user=user, retired_at=None).first()
    return found


def asked_of(card: Card, user: Any) -> Asked:
    """What a yes of this person to this open card takes, besides the gesture."""
    if not kind_of(card.kind).binds:
        return Asked()
    policy, risk = policy_for(card), Risk(card.risk)
    may = rules.wants_passkey(policy, risk, has_one=True)
    step_up = rules.wants_passkey(policy, risk, has_one=may and has_passkey(user))
    return Asked(step_up=step_up, missing=policy.people - (len(yeses(card)) if policy.people > 1 else 0))


def yeses(card: Card) -> list[Any]:
    """The people who have said yes to it, in order."""
    said = Answer.objects.select_related("user").filter(card=card, verdict=ApprovalVerdict.APPROVED)
    return [answer.user for answer in said]


def successor_of(card: Card) -> Card | None:
    """The card that took its place."""
    found: Card | None = Card.objects.filter(supersedes=card).first()
    return found


def asked_instead(card: Card) -> Card | None:
    """The card that waits in its place, however often it was replaced; None where none does."""
    while (card_after := successor_of(card)) is not None:
        card = card_after
        if card.is_open:
            return card
    return None


def able_to_approve(who: Deciders, *, tenant_id: UUID | None) -> QuerySet[Membership]:
    """The members whose yes counts where policy says `who`, in the order they joined."""
    able: QuerySet[Membership] = Membership.objects.filter(tenant_id=tenant_id, role__in=rules.WHO[who])
    return able.order_by("created_at")


def with_passkeys(memberships: QuerySet[Membership]) -> int:
    """How many of these people have a passkey in use."""
    passkeys = Passkey.objects.filter(tenant_id=OuterRef("tenant_id"), user_id=OuterRef("user_id"), removed_at=None)
    return memberships.filter(Exists(passkeys)).count()


def members() -> list[Any]:
    """Everybody who belongs to the tenant."""
    return [one.user for one in Membership.objects.select_related("user").order_by("created_at")]


# Written by hand because it stands on the way of every dispatch: all that is known of a token, in one statement.
# A nonce belongs to one token, and the wall hides another tenant's rows; whose the key is, is asked besides.
_FACTS = """
    SELECT key.public_key, key.retired_at, key.revoked_at IS NOT NULL, key.certificate, key.user_id,
           (SELECT true FROM approvals_tokenrevocation WHERE token_nonce = %(nonce)s), uses.number, uses.bound,
           seal.version, seal.signature, seal.items
    FROM (SELECT count(*) AS number, bool_or(bound_hash = %(bound)s) AS bound
          FROM approvals_tokenuse WHERE token_nonce = %(nonce)s) AS uses
    LEFT JOIN approvals_approverkey AS key ON key.key_id = %(key)s AND key.tenant_id = %(tenant)s
    LEFT JOIN tenants_policyseal AS seal ON seal.kind = 'revocations' AND seal.tenant_id = %(tenant)s
"""
# The sealed list of what was taken back, the key of a token, and what the rows say of both.
_TAKEN_BACK = """
    SELECT seal.version, seal.signature, seal.items, token.key_id,
           EXISTS (SELECT FROM approvals_tokenrevocation WHERE token_nonce = %(nonce)s)
           OR EXISTS (SELECT FROM approvals_approverkey
                      WHERE key_id = token.key_id AND tenant_id = %(tenant)s AND revoked_at IS NOT NULL)
    FROM (SELECT) AS one
    LEFT JOIN approvals_approvaltoken AS token ON token.nonce = %(nonce)s AND token.tenant_id = %(tenant)s
    LEFT JOIN tenants_policyseal AS seal ON seal.kind = 'revocations' AND seal.tenant_id = %(tenant)s
"""


def token_facts(nonce: str, *, key_id: str, bound_hash: str) -> TokenFacts:
    """All that the database knows of a token of this tenant; another tenant's keys and tokens do not exist here."""
    tenant = current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, {"nonce": nonce, "bound": bound_hash, "key": key_id, "tenant": tenant})
        public, retired, void, certificate, user, taken_back, used, bound, *seal = cursor.fetchone()
    ended = _ended(seal)
    trusted = public and _is_certified(tenant, user, key_id, public, certificate)
    void = void or ended is None or ended_key(key_id) in ended
    key = KeyFacts(bytes.fromhex(public), retired, void) if trusted else None
    revoked = taken_back or ended is None or ended_token(nonce) in ended
    return TokenFacts(key=key, revoked=bool(revoked), used=used, used_for_subject=bool(bound))


def ended_key(key_id: str) -> str:
    """What a void key is called in the sealed list of revocations."""
    return f"key:{key_id}"


def ended_token(nonce: str) -> str:
    """What an approval that was taken back is called there."""
    return f"approval:{nonce}"


def sealed_revocations() -> dict[str, dict[str, Any]]:
    """What the rows say was taken back in this tenant, for `manage.py certify`."""
    keys = ApproverKey.objects.exclude(revoked_at=None).values_list("key_id", flat=True)
    nonces = TokenRevocation.objects.values_list("token_nonce", flat=True)
    return {name: {} for name in [*map(ended_key, keys), *map(ended_token, nonces)]}


def _ended(seal: Sequence[Any]) -> policy_seals.Items | None:
    """Keys and approvals that were taken back; None when nobody can say, and then nothing that was approved holds."""
    rows = [tuple(seal)] if seal[0] is not None else []
    return policy_seals.verified_items(current_tenant_id(), PolicyKind.REVOCATIONS, rows)


def is_spent_for(token: ApprovalToken, subject: Approvable) -> bool:
    """Whether a certified key of this tenant, that is not void, signed this token for exactly this subject, and a use
    was spent for it; for what an approval brought into force for good. Whether it runs out is not asked."""
    facts = token_facts(token.nonce, key_id=token.key_id, bound_hash=subject.plan_hash)
    try:
        signed = SignedToken.of_row(token)
    except ValidationError:
        return False
    bound = (signed.plan_hash, signed.work_item_id) == (subject.plan_hash, subject.id)
    approved = signed.verdict is ApprovalVerdict.APPROVED
    return bound and approved and facts.used_for_subject and rules.key_refusal(facts.key, signed) is None


def public_key(key_id: str, *, user_id: UUID) -> bytes | None:
    """The public half of one person's certified key in this tenant; None for anybody else's, and for a void one."""
    mine = ApproverKey.objects.filter(key_id=key_id, user_id=user_id, revoked_at=None).defer("sealed_private")
    key, ended = mine.first(), policy_seals.load_items(PolicyKind.REVOCATIONS)
    if key is None or ended is None or ended_key(key_id) in ended or not is_certified(key):
        return None
    return bytes.fromhex(key.public_key)


def is_certified(key: ApproverKey, *, by: tuple[str, ...] | None = None) -> bool:
    """Whether a pinned installation key (or one of `by`) certified this key for this person in this tenant. Whoever can
    only write rows, a superuser of the database included, cannot make such a row (ADR 99)."""
    return trust.is_certified(rules.KEY_CERTIFICATE, certified_fields(key), key.certificate, by=by)


def certified_fields(key: ApproverKey) -> dict[str, str]:
    return _certified_fields(key.tenant_id, key.user_id, key.key_id, key.public_key)


def _is_certified(tenant: UUID, user: UUID, key_id: str, public_key: str, certificate: str) -> bool:
    fields = _certified_fields(tenant, user, key_id, public_key)
    return trust.is_certified(rules.KEY_CERTIFICATE, fields, certificate)


def _certified_fields(tenant: UUID | None, user: UUID, key_id: str, public_key: str) -> dict[str, str]:
    return {"tenant": str(tenant), "user": str(user), "key_id": key_id, "public_key": public_key}


def yes_to(card: Card) -> Yes | None:
    """The yes that was given to this card, whether it still stands or not."""
    return next(iter(_yeses(decision__card=card)), None)


def standing_yeses() -> list[Yes]:
    """What may run without asking: the standing yeses that still open something, those that end first first."""
    found = _yeses(scope=ApprovalScope.STANDING, expires_at__gt=now(), revocation=None)
    return [one for one in found if one.holds]


def _yeses(**about: Any) -> list[Yes]:
    used = TokenUse.objects.filter(token_nonce=OuterRef("nonce")).order_by().values("token_nonce")
    void = ApproverKey.objects.filter(key_id=OuterRef("key_id"), revoked_at__isnull=False)
    tokens = (
        ApprovalToken.objects.filter(**about)
        .select_related("decision__user", "decision__card", "revocation__user")
        .annotate(used=Coalesce(Subquery(used.annotate(number=Count("pk")).values("number")), 0), void=Exists(void))
        .order_by("expires_at")
    )
    return [Yes(token, token.used, _standing_of(token)) for token in tokens]


def _standing_of(token: Any) -> Standing:
    """For people only: `verify` and `check` look at the signature as well."""
    if hasattr(token, "revocation"):
        return Standing.TAKEN_BACK
    if token.void:
        return Standing.VOID
    if token.expires_at <= now():
        return Standing.RAN_OUT
    return Standing.HOLDS if token.used < token.max_executions else Standing.USED_UP


def is_for_these_calls(nonce: str) -> bool:
    """Whether a person gave this approval for the calls that it names. A standing approval was given before there were
    any; of a token that is not there nothing is known."""
    return bool(ApprovalToken.objects.filter(nonce=nonce).exclude(scope=ApprovalScope.STANDING).exists())


def is_void(nonce: str) -> bool:
    """Was the token with this signed nonce taken back, or everything that its key signed? Asked at every dispatch."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKEN_BACK, {"nonce": nonce, "tenant": current_tenant_id()})
        *seal, key_id, taken_back = cursor.fetchone()
    ended = _ended(seal)
    return bool(taken_back) or ended is None or ended_token(nonce) in ended or ended_key(key_id or "") in ended


def uses(nonce: str) -> int:
    return int(TokenUse.objects.filter(token_nonce=nonce).count())


def use_of(nonce: str, *, bound_hash: str) -> TokenUse:
    """The use of a token that was spent for exactly this content; only after `check` said that there is one."""
    use: TokenUse = TokenUse.objects.get(token_nonce=nonce, bound_hash=bound_hash)
    return use


# Everything that a card says and does not change: what a person had before them when they said yes.
_FACE = (
    "kind", "risk", "intent", "rationale", "consequence", "affected", "facts", "body", "details", "reads",
    "payload_hash", "scope", "max_executions", "token_seconds", "requested_by",
)  # fmt: skip


def face_hash(card: Card) -> str:
    """The hash of all that the card shows, as it is stored. A token is signed with it."""
    return sha256_hex({name: getattr(card, name) for name in _FACE})


def require_shown(card: Card, face: str) -> None:
    """Raises `SilasError("card_changed")` 409 unless `face` is the hash of what the card shows now: a press counts for
    what its page showed, and for nothing else."""
    if face != face_hash(card):
        message = "This card has changed since it was shown to you. Nothing was decided; look at it again."
        raise SilasError("card_changed", message, status=409)


def approved_card(subject_kind: str, subject_id: UUID, face: str) -> Card | None:
    """The card about this that shows exactly what was signed; None where no card does."""
    found = Card.objects.filter(subject_kind=subject_kind, subject_id=subject_id, status=CardStatus.DECIDED)
    return next((one for one in found.order_by("-settled_at") if face_hash(one) == face), None)


def latest_about(subject_kind: str, subject_id: UUID) -> Card | None:
    """The newest card about this."""
    cards = Card.objects.filter(subject_kind=subject_kind, subject_id=subject_id)
    found: Card | None = cards.order_by("-created_at").first()
    return found


def cards_reading(card: Card) -> list[Card]:
    """The other cards that wait and show the state of a record that this one shows too, the oldest first."""
    same = Q()
    for each in card.reads:
        same |= Q(reads__contains=[{"book": each["book"], "key": each["key"]}])
    if not same:
        return []
    return list(Card.objects.filter(same, status__in=WAITING).exclude(pk=card.pk).order_by("created_at"))

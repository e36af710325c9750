"""Read cards, policies, keys and tokens. Inside a tenant scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Case, Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Greatest, Least
from pydantic import ValidationError

from apps.approvals import rules
from apps.approvals.cards.kinds import AWAITED_KINDS, OFFERED_KINDS
from apps.approvals.cards.schemas import ApprovalRequirements, Policy, Quorum
from apps.approvals.enums import (
    ApprovalScope,
    ApprovalState,
    ApprovalVerdict,
    CardKind,
    CardSort,
    CardStatus,
    Deciders,
    Pace,
    Risk,
)
from apps.approvals.keys.schemas import KeyFacts
from apps.approvals.models import (
    OPEN_STATUSES,
    Answer,
    ApprovalPolicy,
    ApprovalToken,
    ApproverKey,
    Card,
    CardQuestion,
    CardTiming,
    ClientKey,
    Passkey,
    TokenRevocation,
    TokenUse,
)
from apps.approvals.tokens.schemas import Approvable, Approval, SignedToken, TokenFacts
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Membership, User
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.pagination import read_page
from kernel.tenancy import current_tenant_id


@dataclass(frozen=True)
class CardFilter:
    """Which cards to list; None means any. A card whose time is up is in the state `expired`."""

    state: CardStatus | None = None
    risk: Risk | None = None
    kind: CardKind | None = None
    deployment: UUID | None = None
    assignee: UUID | None = None
    session: UUID | None = None
    waiting_for_customer: bool | None = None

    def condition(self) -> Q:
        chosen = {
            "risk": self.risk,
            "kind": self.kind,
            "deployment_id": self.deployment,
            "assignee_id": self.assignee,
            "session_id": self.session,
        }
        condition = Q(**{name: value for name, value in chosen.items() if value is not None})
        if self.waiting_for_customer is not None:
            parked = Q(_is_parked(), status__in=OPEN_STATUSES, expires_at__gt=now())
            condition &= parked if self.waiting_for_customer else ~parked
        if self.state is None:
            return condition
        overdue = Q(status__in=OPEN_STATUSES, expires_at__lte=now())
        condition &= Q(status=self.state) | overdue if self.state == CardStatus.EXPIRED else Q(status=self.state)
        return condition & ~overdue if self.state in OPEN_STATUSES else condition


def list_cards(
    chosen: CardFilter, *, before: str, limit: int, sort: CardSort = CardSort.NEWEST
) -> tuple[list[Card], str]:
    """The cards that match in the order of `sort`, each with its decision if any, and the cursor of the next page."""
    rows = Card.objects.filter(chosen.condition()).select_related("deployment", "assignee", "decision__user")
    rows = rows.prefetch_related("questions__asker")
    if sort is CardSort.DEADLINE:
        return read_page(rows, before=before, limit=limit, moment="expires_at", earliest_first=True)
    return read_page(rows, before=before, limit=limit)


def open_cards() -> QuerySet[Card]:
    """Return the cards that can still be decided, oldest first: those that a conversation waits for, then those that
    something else waits for, then the rest."""
    waiting = Card.objects.filter(status__in=OPEN_STATUSES, expires_at__gt=now()).select_related(
        "deployment", "assignee"
    )
    in_conversation = When(kind__in=AWAITED_KINDS, session_id__isnull=False, then=0)
    urgency = Case(in_conversation, When(kind__in=AWAITED_KINDS, then=1), default=2)
    cards: QuerySet[Card] = waiting.order_by(urgency, "created_at")
    return cards


def open_cards_about(subject_id: UUID, *subject_kinds: str) -> QuerySet[Card]:
    """Return the cards about a subject that are not settled, including those that are about to be expired."""
    cards: QuerySet[Card] = Card.objects.filter(subject_id=subject_id, subject_kind__in=subject_kinds)
    return cards.filter(status__in=OPEN_STATUSES)


def undecided_cards() -> QuerySet[Card]:
    """Return the open cards that wait for an answer, the nearest deadline first. Cards that only offer to undo
    what was done are left out."""
    cards: QuerySet[Card] = open_cards().exclude(kind__in=OFFERED_KINDS).order_by("expires_at", "created_at")
    return cards


def waiting_cards() -> QuerySet[Card]:
    """Return the queue: the undecided cards but those that wait for the customer."""
    return undecided_cards().exclude(_is_parked())


def parts_of_queue() -> tuple[list[Card], list[Card]]:
    """Return the cards to decide and those that wait for the customer, read together."""
    to_decide: list[Card] = []
    parked: list[Card] = []
    for card in undecided_cards().annotate(is_parked=_is_parked()):
        (parked if card.is_parked else to_decide).append(card)
    return to_decide, parked


def waiting_count() -> int:
    return waiting_cards().count()


def _is_parked() -> Exists:
    """Whether a card waits for the customer to answer a question."""
    return Exists(CardQuestion.objects.filter(card=OuterRef("pk"), ended_at=None, waits_until__gt=now()))


def queued_at() -> Greatest:
    """When a card came into the queue: when it was opened or, if later, when its last wait for the customer ended or
    will end by itself."""
    waits = CardQuestion.objects.filter(card=OuterRef("pk")).order_by().values("card")
    return Greatest(F("created_at"), Subquery(waits.annotate(end=Max(Least("ended_at", "waits_until"))).values("end")))


def questions_about(card: Card) -> list[CardQuestion]:
    """Return what the customer was asked about a card, in order."""
    asked = list(CardQuestion.objects.select_related("asker").filter(card=card))
    for question in asked:
        question.card = card
    return asked


def undoable_cards() -> QuerySet[Card]:
    """Return the open cards that offer to undo what was done, the newest first."""
    cards: QuerySet[Card] = open_cards().filter(kind__in=OFFERED_KINDS).order_by("-created_at")
    return cards


def get_card(card_id: UUID) -> Card:
    """Return one card with its decision and who made it, if any. Raises `NotFound` for an unknown or foreign id."""
    card: Card | None = (
        Card.objects.select_related("deployment", "assignee", "decision__user").filter(pk=card_id).first()
    )
    if card is None:
        raise NotFound()
    return card


def card_lifetime(pace: Pace, deployment_id: UUID | None) -> int:
    """Return how many seconds a card of this pace waits: as set for the deployment, else the tenant, else by
    default."""
    rows = CardTiming.objects.filter(Q(deployment_id=deployment_id) | Q(deployment=None), pace=pace)
    seconds: dict[UUID | None, int] = dict(rows.values_list("deployment_id", "seconds"))
    return int(seconds.get(deployment_id) or seconds.get(None) or settings.CARD_SECONDS[pace])


def policy_for(card: Card) -> Policy:
    """Return what the tenant requires of an approval of this card: the most specific row, or the defaults."""
    return _policy_at(card.scope, card.risk)


def needs_passkey(risk: Risk, user: User) -> bool:
    """True if this person needs a passkey for an action of this risk that is not about a card. Decided by the policies
    without a scope."""
    return rules.needs_passkey(_policy_at("", risk), risk, has_one=has_passkey(user))


def always_needs_passkey(risk: Risk) -> bool:
    """True if an action of this risk needs a passkey from everybody."""
    return rules.needs_passkey(_policy_at("", risk), risk, has_one=False)


def _policy_at(scope: str, risk: str) -> Policy:
    rows = _certified_policies()
    if rows is None:
        return rules.STRICTEST_POLICY
    fitting = [policy_fields(row) for row in rows if row.scope in ("", scope) and row.risk in ("", risk)]
    return rules.most_specific_policy([Policy(**fields) for fields in fitting])


def require_certified_policy() -> None:
    """Raise `SilasError("policy_not_certified")` 409 if the stored policies are not the certified ones."""
    if _certified_policies() is None:
        raise policy_seals.not_certified_error(PolicyKind.APPROVALS)


def policy_fields(row: ApprovalPolicy) -> dict[str, object]:
    return {name: getattr(row, name) for name in Policy.model_fields}


def policies_to_certify() -> dict[str, dict[str, object]]:
    """Return the tenant's policies as stored, for `manage.py certify`."""
    return {str(row.pk): policy_fields(row) for row in ApprovalPolicy.objects.all()}


def _certified_policies() -> list[ApprovalPolicy] | None:
    """Return the tenant's policies if they are exactly the certified ones, else None. A missing row counts as well,
    because deleting a strict one would leave a weaker one in its place."""
    sealed = policy_seals.load_items(PolicyKind.APPROVALS)
    rows = list(ApprovalPolicy.objects.all())
    if sealed is None:
        return None
    if dict(sealed) != {str(row.pk): policy_seals.digest(policy_fields(row)) for row in rows}:
        policy_seals.report_untrusted(PolicyKind.APPROVALS, "rows", "forged")
        return None
    return rows


def passkeys_of(user: User, *, rp_id: str = "") -> list[Passkey]:
    """Return the person's passkeys in use, oldest first; with `rp_id` only those that work at this address."""
    passkeys = Passkey.objects.filter(user=user, removed_at=None)
    return list(passkeys.filter(rp_id=rp_id) if rp_id else passkeys)


def has_passkey(user: User) -> bool:
    return bool(Passkey.objects.filter(user=user, removed_at=None).exists())


def active_key(user: User) -> ApproverKey | None:
    """Return the key that the person signs with; None before their first approval."""
    key: ApproverKey | None = ApproverKey.objects.filter(user=user, retired_at=None).first()
    return key


def approval_requirements(card: Card, user: User) -> ApprovalRequirements:
    """Return what this person's approval of this open card needs, besides the gesture."""
    if not card.of_kind.binds:
        return ApprovalRequirements()
    policy, risk = policy_for(card), Risk(card.risk)
    # Asking for the passkey costs a query, which most cards do not need.
    depends_on_person = rules.needs_passkey(policy, risk, has_one=True)
    step_up = rules.needs_passkey(policy, risk, has_one=depends_on_person and has_passkey(user))
    return ApprovalRequirements(step_up=step_up, missing=_missing_approvals(policy, card))


def quorum_of(card: Card) -> Quorum | None:
    """What an approval of this open card needs of whom; None for a card that is settled or authorizes nothing."""
    if not card.is_open or not card.of_kind.binds:
        return None
    policy = policy_for(card)
    return Quorum(policy=policy, missing=_missing_approvals(policy, card))


def _missing_approvals(policy: Policy, card: Card) -> int:
    return policy.people - (len(approvers_of(card)) if policy.people > 1 else 0)


def answers_to(card: Card) -> list[Answer]:
    """Everybody's answers to the card, in order."""
    return list(Answer.objects.select_related("user").filter(card=card))


def approvers_of(card: Card) -> list[User]:
    """Return the people who have approved the card so far, in order."""
    approvals = Answer.objects.select_related("user").filter(card=card, verdict=ApprovalVerdict.APPROVED)
    return [answer.user for answer in approvals]


def successor_of(card: Card) -> Card | None:
    """Return the card that replaced this one, if any."""
    successor: Card | None = Card.objects.filter(supersedes=card).first()
    return successor


def open_successor(card: Card) -> Card | None:
    """Return the open card that replaced this one, directly or through others; None if there is none."""
    successor = successor_of(card)
    while successor is not None and not successor.is_open:
        successor = successor_of(successor)
    return successor


def eligible_memberships(who: Deciders, *, tenant_id: UUID | None) -> QuerySet[Membership]:
    """Return the members whose role may approve under a policy with `who`, in the order in which they joined."""
    rows = Membership.objects.filter(Q(tenant_id=tenant_id), role__in=rules.ROLES_BY_DECIDERS[who])
    return rows.order_by("created_at")


def count_with_passkey(memberships: QuerySet[Membership]) -> int:
    passkeys = Passkey.objects.filter(tenant_id=OuterRef("tenant_id"), user_id=OuterRef("user_id"), removed_at=None)
    return memberships.filter(Exists(passkeys)).count()


def members() -> list[User]:
    """Return all users of the tenant, in the order in which they joined."""
    return [membership.user for membership in Membership.objects.select_related("user").order_by("created_at")]


def get_member(user_id: UUID) -> User:
    """Return a member by their user id. Raises `NotFound` for anyone else."""
    membership: Membership | None = Membership.objects.select_related("user").filter(user_id=user_id).first()
    if membership is None:
        raise NotFound()
    return membership.user


# Everything known of a token in one statement, written by hand because every dispatch runs it. A nonce belongs to one
# token, and row security hides other tenants' rows; the tenant of the key is compared as well.
_FACTS = """
    SELECT key.public_key, key.retired_at, key.revoked_at IS NOT NULL, key.certificate, key.user_id,
           (SELECT true FROM approvals_tokenrevocation WHERE token_nonce = %(nonce)s), uses.number, uses.bound,
           seal.version, seal.signature, seal.items
    FROM (SELECT count(*) AS number, bool_or(bound_hash = %(bound)s) AS bound
          FROM approvals_tokenuse WHERE token_nonce = %(nonce)s) AS uses
    LEFT JOIN approvals_approverkey AS key ON key.key_id = %(key)s AND key.tenant_id = %(tenant)s
    LEFT JOIN tenants_policyseal AS seal ON seal.kind = 'revocations' AND seal.tenant_id = %(tenant)s
"""
# The sealed list of revocations, the key of a token, and what the rows say about both.
_REVOKED = """
    SELECT seal.version, seal.signature, seal.items, token.key_id,
           EXISTS (SELECT FROM approvals_tokenrevocation WHERE token_nonce = %(nonce)s)
           OR EXISTS (SELECT FROM approvals_approverkey
                      WHERE key_id = token.key_id AND tenant_id = %(tenant)s AND revoked_at IS NOT NULL)
    FROM (SELECT) AS one
    LEFT JOIN approvals_approvaltoken AS token ON token.nonce = %(nonce)s AND token.tenant_id = %(tenant)s
    LEFT JOIN tenants_policyseal AS seal ON seal.kind = 'revocations' AND seal.tenant_id = %(tenant)s
"""


def token_facts(nonce: str, *, key_id: str, bound_hash: str) -> TokenFacts:
    """Return everything known of a token of this tenant; another tenant's keys and tokens do not exist here."""
    tenant = current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, {"nonce": nonce, "bound": bound_hash, "key": key_id, "tenant": tenant})
        public, retired, void, certificate, user, revoked, used, bound, *seal = cursor.fetchone()
    revocations = _sealed_revocations(seal)
    fields = _certified_fields(tenant, user, key_id, public)
    trusted = public and trust.is_certified(rules.KEY_CERTIFICATE, fields, certificate)
    void = void or revocations is None or revoked_key_name(key_id) in revocations
    key = KeyFacts(bytes.fromhex(public), retired, void) if trusted else None
    revoked = revoked or revocations is None or revoked_token_name(nonce) in revocations
    return TokenFacts(key=key, revoked=bool(revoked), used=used, used_for_subject=bool(bound))


def revoked_key_name(key_id: str) -> str:
    """Return the name of a revoked key in the sealed list of revocations."""
    return f"key:{key_id}"


def revoked_token_name(nonce: str) -> str:
    """Return the name of a revoked approval in the sealed list of revocations."""
    return f"approval:{nonce}"


def revocations_to_certify() -> dict[str, dict[str, object]]:
    """Return the tenant's revocations as stored, for `manage.py certify`."""
    people, programs = ApproverKey.objects.exclude(revoked_at=None), ClientKey.objects.exclude(revoked_at=None)
    keys = [*people.values_list("key_id", flat=True), *programs.values_list("key_id", flat=True)]
    nonces = TokenRevocation.objects.values_list("token_nonce", flat=True)
    return {name: {} for name in [*map(revoked_key_name, keys), *map(revoked_token_name, nonces)]}


def _sealed_revocations(seal: Sequence[object]) -> policy_seals.Items | None:
    """Return the sealed list of revoked keys and approvals. None if it cannot be trusted: then no approval is valid."""
    rows = [tuple(seal)] if seal[0] is not None else []
    return policy_seals.verified_items(current_tenant_id(), PolicyKind.REVOCATIONS, rows)


def is_spent_for(token: ApprovalToken, subject: Approvable) -> bool:
    """True if a valid key of this tenant signed this token for exactly this subject, and a use was spent for it.

    The expiry of the token is ignored: this is for approvals whose effect is permanent.
    """
    facts = token_facts(token.nonce, key_id=token.key_id, bound_hash=subject.plan_hash)
    try:
        signed = SignedToken.of_row(token)
    except ValidationError:
        return False
    bound = (signed.plan_hash, signed.work_item_id) == (subject.plan_hash, subject.id)
    approved = signed.verdict is ApprovalVerdict.APPROVED
    return bound and approved and facts.used_for_subject and rules.key_refusal(facts.key, signed) is None


def public_key(key_id: str, *, user_id: UUID) -> bytes | None:
    """Return the public half of this person's certified key, or of a program's that decides on their behalf; None for
    another person's key and for a revoked one."""
    rows = ApproverKey.objects.filter(key_id=key_id, user_id=user_id, revoked_at=None).defer("sealed_private")
    key = rows.first()
    if key is None:
        program = ClientKey.objects.filter(key_id=key_id, user_id=user_id).first()
        return bytes.fromhex(program.public_key) if program and is_valid_client_key(program) else None
    revocations = policy_seals.load_items(PolicyKind.REVOCATIONS)
    if revocations is None or revoked_key_name(key_id) in revocations or not is_certified(key):
        return None
    return bytes.fromhex(key.public_key)


def is_certified(key: ApproverKey, *, by: tuple[str, ...] | None = None) -> bool:
    """True if a pinned installation key (or one of `by`) certified this key for its person and tenant. Someone who can
    only write rows, even as superuser of the database, cannot create such a row (ADR 99)."""
    return trust.is_certified(rules.KEY_CERTIFICATE, certified_fields(key), key.certificate, by=by)


def certified_fields(key: ApproverKey) -> dict[str, str]:
    return _certified_fields(key.tenant_id, key.user_id, key.key_id, key.public_key)


def _certified_fields(tenant: UUID | None, user: UUID, key_id: str, public_key: str) -> dict[str, str]:
    return {"tenant": str(tenant), "user": str(user), "key_id": key_id, "public_key": public_key}


def client_keys() -> list[ClientKey]:
    """Return the keys with which programs decide, revoked ones included, the oldest first."""
    return list(ClientKey.objects.select_related("user", "api_key"))


def is_valid_client_key(key: ClientKey) -> bool:
    """True if a pinned installation key certified this key with its person, program and rights, and it is revoked
    neither in its row nor in the sealed list."""
    revocations = policy_seals.load_items(PolicyKind.REVOCATIONS)
    if key.revoked_at is not None or revocations is None or revoked_key_name(key.key_id) in revocations:
        return False
    return trust.is_certified(rules.CLIENT_KEY_CERTIFICATE, client_key_fields(key), key.certificate)


def client_key_fields(key: ClientKey) -> dict[str, object]:
    return {
        "tenant": str(key.tenant_id),
        "user": str(key.user_id),
        "api_key": str(key.api_key_id),
        "key_id": key.key_id,
        "public_key": key.public_key,
        "scopes": list(key.scopes),
        "max_risk": str(key.max_risk),
    }


def has_client_answer(card: Card, signature: str) -> bool:
    """True if exactly this signature answers the card already."""
    return bool(Answer.objects.filter(card=card, signature=signature).exists())


def approval_for(card: Card) -> Approval | None:
    """Return the approval of this card, whether it is still valid or not."""
    return next(iter(_approvals(decision__card=card)), None)


def standing_approvals() -> list[Approval]:
    """Return the valid standing approvals, the first to expire first."""
    approvals = _approvals(scope=ApprovalScope.STANDING, expires_at__gt=now(), revocation=None)
    return [approval for approval in approvals if approval.is_valid]


def _approvals(**filters: object) -> list[Approval]:
    used = TokenUse.objects.filter(token_nonce=OuterRef("nonce")).order_by().values("token_nonce")
    void = ApproverKey.objects.filter(key_id=OuterRef("key_id"), revoked_at__isnull=False)
    tokens = (
        ApprovalToken.objects.filter(**filters)
        .select_related("decision__user", "decision__card", "revocation__user")
        .annotate(used=Coalesce(Subquery(used.annotate(number=Count("pk")).values("number")), 0), void=Exists(void))
        .order_by("expires_at")
    )
    return [Approval(token, token.used, _state_of(token)) for token in tokens]


def _state_of(token: Any) -> ApprovalState:
    # For display only: `verify_token` and `check_token` verify the signature as well.
    if hasattr(token, "revocation"):
        return ApprovalState.TAKEN_BACK
    if token.void:
        return ApprovalState.VOID
    if token.expires_at <= now():
        return ApprovalState.RAN_OUT
    return ApprovalState.HOLDS if token.used < token.max_executions else ApprovalState.USED_UP


def is_for_these_calls(nonce: str) -> bool:
    """True if a person gave this approval for the very calls that it names. A standing approval was given before there
    were any, and nothing is known of a token that does not exist."""
    return bool(ApprovalToken.objects.filter(nonce=nonce).exclude(scope=ApprovalScope.STANDING).exists())


def is_revoked(nonce: str) -> bool:
    """True if the token with this signed nonce, or its key, was revoked. Asked at every dispatch."""
    with connection.cursor() as cursor:
        cursor.execute(_REVOKED, {"nonce": nonce, "tenant": current_tenant_id()})
        *seal, key_id, revoked = cursor.fetchone()
    revocations = _sealed_revocations(seal)
    if revoked or revocations is None:
        return True
    return revoked_token_name(nonce) in revocations or revoked_key_name(key_id or "") in revocations


def count_uses(nonce: str) -> int:
    return int(TokenUse.objects.filter(token_nonce=nonce).count())


def get_use(nonce: str, *, bound_hash: str) -> TokenUse:
    """Return the use of a token that was spent for exactly this content. `check_token` must have found that it
    exists."""
    use: TokenUse = TokenUse.objects.get(token_nonce=nonce, bound_hash=bound_hash)
    return use


# Everything on a card that never changes: what a person saw when they approved it.
_FACE = (
    "kind", "risk", "intent", "rationale", "consequence", "affected", "facts", "body", "details", "reads",
    "payload_hash", "scope", "max_executions", "token_seconds", "requested_by",
)  # fmt: skip


def face_hash(card: Card) -> str:
    """Return the hash of everything that the card shows, as stored. A token is signed with it."""
    return sha256_hex({name: getattr(card, name) for name in _FACE})


def require_unchanged(card: Card, face: str) -> None:
    """Raise `SilasError("card_changed")` 409 unless `face` is the hash of what the card shows now: an answer counts
    only for what the person's page showed."""
    if face != face_hash(card):
        message = gettext("This card has changed since you opened it. Nothing was decided. Review it again.")
        raise SilasError(ErrorCode.CARD_CHANGED, message)


def approved_card(subject_kind: str, subject_id: UUID, face: str) -> Card | None:
    """Return the decided card about a subject that shows exactly what was signed; None if there is none."""
    cards = Card.objects.filter(subject_kind=subject_kind, subject_id=subject_id, status=CardStatus.DECIDED)
    return next((card for card in cards.order_by("-settled_at") if face_hash(card) == face), None)


def latest_card_about(subject_kind: str, subject_id: UUID) -> Card | None:
    """Return the newest card about a subject."""
    cards = Card.objects.filter(subject_kind=subject_kind, subject_id=subject_id)
    newest: Card | None = cards.order_by("-created_at").first()
    return newest


def cards_sharing_records(card: Card) -> list[Card]:
    """Return the other open cards that show the state of a record that this card shows, the oldest first."""
    shared = Q()
    for record in card.reads:
        shared |= Q(reads__contains=[{"book": record["book"], "key": record["key"]}])
    if not shared:
        return []
    return list(Card.objects.filter(shared, status__in=OPEN_STATUSES).exclude(pk=card.pk).order_by("created_at"))

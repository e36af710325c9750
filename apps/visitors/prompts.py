"""Put prompts to the visitor of a conversation (a choice, a form, a secret) and take the answers.

A visitor answers only what was put to them in their own conversation, once, in time, and as the person it was put to. A
choice or form becomes a `decision` with the visitor as sender, and reads on like their words. It never approves
anything that staff decide: no approval token comes of it, and no card of the approvals room is within reach. A
secret goes over HTTP into its sealed row; no frame, log or model sees it. Locked: the conversation, then the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4, uuid5

from django.db.models import QuerySet
from pydantic import Field, model_validator

from apps.access.rules import PUBLIC
from apps.access.tokens import Visitor
from apps.approvals.cards.schemas import Guidance, Option, Options
from apps.approvals.enums import Risk
from apps.approvals.schemas import FrozenModel
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue
from apps.bus.enums import Sender as From
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.schemas import Accepted
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.visitors import prompt_forms
from apps.visitors.enums import AskKind, AskStatus
from apps.visitors.models import VisitorCard
from apps.visitors.prompt_forms import DAY, FormWanted, Seconds
from kernel import tracing
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.secrets_key import seal_secret, unseal_secret
from kernel.taint import Taint
from kernel.unicode_safety import has_hidden_characters

ASKING_ROLES = (Role.OWNER, Role.APPROVER, Role.AGENT)
OPEN_AT_MOST = 5
MAX_SECRET = 4000
FORMS_SHOWN = 5


class Question(FrozenModel):
    """Options for the visitor to press; medium risk takes a second press and high a slide (spec 0.5.2)."""

    question: Annotated[str, Field(min_length=1, max_length=500)]
    rationale: Annotated[str, Field(max_length=500)] = ""
    options: Annotated[Options, Field(min_length=1)]
    allow_freetext: bool = False
    risk_level: Literal["low", "medium", "high"] = "low"
    seconds: Seconds = DAY

    @model_validator(mode="after")
    def _readable(self) -> Question:
        if has_hidden_characters([self.question, self.rationale, *(option.label for option in self.options)]):
            raise ValueError("a text looks different from what it is")
        return self


class SecretWanted(FrozenModel):
    """Something secret that the visitor is to give (contract silas 13)."""

    label: Annotated[str, Field(min_length=1, max_length=120)]
    input_hint: Annotated[str, Field(max_length=80)] = ""
    guidance: Guidance
    seconds: Seconds = DAY


Asked = Question | SecretWanted | FormWanted


def ask_visitor(
    session_id: UUID, asked: Asked, *, actor: str, user: User | None = None, name: str = "", nonce: str = ""
) -> VisitorCard:
    """Put it before the visitor. `user`: the member who asks; None for an API key. The same `nonce` twice asks once.
    Raises 409 `owned_by_other` while a colleague answers, and `too_many_questions` while `OPEN_AT_MOST` wait."""
    if user is not None:
        require_role(user, ASKING_ROLES)
    session = lock_session(session_id)
    card_id = uuid5(session_id, nonce) if nonce else uuid4()
    if nonce and (before := VisitorCard.objects.filter(pk=card_id, session=session).first()):
        return before
    if session.owner == Owner.HUMAN and session.owner_user_id != getattr(user, "pk", None):
        raise SilasError(ErrorCode.OWNED_BY_OTHER, gettext("A colleague is now answering in this conversation."))
    if _waiting(session).count() >= OPEN_AT_MOST:
        raise SilasError(ErrorCode.TOO_MANY_QUESTIONS)
    card = _card(session, asked, actor, card_id)
    sender = Sender.HUMAN if session.owner == Owner.HUMAN else Sender.BOT
    signed = {"name": name} if sender == Sender.HUMAN and name else {}
    secret = isinstance(asked, SecretWanted)
    chronicle.append(
        session,
        kind=EntryKind.SECURE_INPUT if secret else EntryKind.DECISION,
        sender=sender,
        text="" if isinstance(asked, SecretWanted) else asked.question,
        payload=shown(card) | signed,
        taint=Taint.AUTH,
        author=user if sender == Sender.HUMAN else None,
    )
    _note(AuditEvent.VISITOR_ASKED, card, actor=actor, kind=card.kind, risk=card.risk)
    return card


def answer(visitor: Visitor, request_id: UUID, *, value: str = "", words: str = "") -> Accepted:
    """The visitor's choice, or their own words where the card takes them. The same choice sent twice counts once.

    Raises `not_found` 404 for what is not this conversation's, and 409 `card_decided`, `card_expired`,
    `card_withdrawn`, `card_not_yours` (the level has ended), `choice_unknown`, `freetext_not_wanted`.
    """
    session = lock_session(visitor.session_id)
    card = _card_of(session, request_id, AskKind.DECISION)
    said = _said(card, value, words.strip())
    _require_same_person(session, card)
    if card.status == AskStatus.ANSWERED and value and card.chosen == value:
        return Accepted(session.seq, repeated=True)
    _claim(card, chosen=value)
    return _answered(session, card, said, {"selected_value": value})


def fill(visitor: Visitor, request_id: UUID, given: Mapping[str, str]) -> Accepted:
    """The visitor's answers to a form, by the names of its fields. The same sent twice count once. Raises as `answer`
    does, and 400 `invalid_answers` with the problem of each field."""
    session = lock_session(visitor.session_id)
    card = _card_of(session, request_id, AskKind.FORM)
    fields = prompt_forms.fields_of(card.payload)
    values = prompt_forms.checked(fields, given)
    _require_same_person(session, card)
    if card.status == AskStatus.ANSWERED and card.answers == values:
        return Accepted(session.seq, repeated=True)
    _claim(card, answers=values)
    return _answered(session, card, prompt_forms.as_words(fields, values), {"answers": values})


def filled_in(session_id: UUID) -> list[dict[str, str]]:
    """`{label, value}` of what this visitor filled into forms, the newest form last."""
    cards = VisitorCard.objects.filter(session_id=session_id, kind=AskKind.FORM, status=AskStatus.ANSWERED)
    newest = list(cards.order_by("-settled_at")[:FORMS_SHOWN])[::-1]
    answered = [prompt_forms.told(prompt_forms.fields_of(card.payload), card.answers) for card in newest]
    return [{"label": label, "value": value} for pairs in answered for label, value in pairs]


def _answered(session: ChatSession, card: VisitorCard, said: str, what: Mapping[str, object]) -> Accepted:
    """Recorded as the visitor's words, and given a turn; to a person, a look of the gates."""
    entry = chronicle.append(
        session,
        kind=EntryKind.DECISION,
        sender=Sender.VISITOR,
        text=said,
        payload={"request_id": str(card.pk), "label": said, "status": "answered", **what},
        taint=_taint(session),
    )
    overheard = session.owner != Owner.BOT
    bus.send_message(
        Queue.PROXY,
        kind=Kind.USER_MESSAGE,
        scope_id=session.pk,
        sender=From.USER,
        payload={"seq": entry.seq, "overheard": overheard},
        trace_id=tracing.trace_for_message(),
        message_id=f"message:{entry.pk}",
        taint=entry.taint,
    )
    _note(AuditEvent.VISITOR_DECIDED, card, actor="visitor", seq=entry.seq)
    return Accepted(entry.seq, repeated=False)


def store_secret(visitor: Visitor, ref_id: UUID, value: str) -> None:
    """Seal what the visitor gave. Raises `not_found` 404, and 409 as `answer` does: it is stored once."""
    session = lock_session(visitor.session_id)
    card = _card_of(session, ref_id, AskKind.SECURE_INPUT)
    _require_same_person(session, card)
    _claim(card, sealed=seal_secret(value.encode(), belongs_to=_belongs_to(card)))
    _tell_stored(session, card, AskStatus.ANSWERED)
    _note(AuditEvent.SECRET_STORED, card, actor="visitor")


def take_secret(card_id: UUID, session_id: UUID, *, actor: str) -> str:
    """What the visitor gave, once: it is gone from here with the asking. Raises `not_found`, 409 `secret_not_there`."""
    lock_session(session_id)
    card = card_of(card_id, session_id)
    if card.sealed is None:
        raise SilasError(ErrorCode.SECRET_NOT_THERE)
    value = unseal_secret(bytes(card.sealed), belongs_to=_belongs_to(card)).decode()
    # With the reading, under the same lock: no second caller gets it.
    VisitorCard.objects.filter(pk=card.pk).update(sealed=None)
    _note(AuditEvent.SECRET_TAKEN, card, actor=actor)
    return value


def withdraw(card_id: UUID, session_id: UUID, *, actor: str, user: User | None = None) -> None:
    """Withdraw an unanswered prompt. Raises `not_found`, 409 when it is settled."""
    if user is not None:
        require_role(user, ASKING_ROLES)
    session = lock_session(session_id)
    card = card_of(card_id, session_id)
    _claim(card, status=AskStatus.WITHDRAWN)
    if card.kind == AskKind.SECURE_INPUT:
        _tell_stored(session, card, AskStatus.WITHDRAWN)
    else:
        payload = {"request_id": str(card.pk), "status": AskStatus.WITHDRAWN.value}
        chronicle.append(session, kind=EntryKind.DECISION, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
    _note(AuditEvent.VISITOR_CARD_WITHDRAWN, card, actor=actor)


def card_of(card_id: UUID, session_id: UUID) -> VisitorCard:
    """Raises `NotFound` for an unknown or foreign one."""
    card: VisitorCard | None = VisitorCard.objects.filter(pk=card_id, session_id=session_id).first()
    if card is None:
        raise NotFound()
    return card


def shown(card: VisitorCard) -> dict[str, Any]:
    """What its frame says (spec 8.1)."""
    name = "ref_id" if card.kind == AskKind.SECURE_INPUT else "request_id"
    risk = {} if card.kind == AskKind.SECURE_INPUT else {"risk_level": str(card.risk)}
    return {name: str(card.pk), **card.payload, **risk, "expires_at": card.expires_at.isoformat()}


def _waiting(session: ChatSession) -> QuerySet[VisitorCard]:
    rows: QuerySet[VisitorCard] = VisitorCard.objects.filter(
        session=session, status=AskStatus.OPEN, expires_at__gt=now()
    )
    return rows


def _card(session: ChatSession, asked: Asked, actor: str, card_id: UUID) -> VisitorCard:
    moment = now()
    card: VisitorCard = VisitorCard.objects.create(
        pk=card_id,
        session=session,
        kind=_kind(asked),
        risk=asked.risk_level if isinstance(asked, Question) else Risk.LOW,
        payload=asked.model_dump(mode="json", exclude={"seconds", "risk_level"}),
        customer=_customer(session),
        asked_by=actor,
        created_at=moment,
        expires_at=moment + timedelta(seconds=asked.seconds),
    )
    return card


def _kind(asked: Asked) -> AskKind:
    match asked:
        case Question():
            return AskKind.DECISION
        case SecretWanted():
            return AskKind.SECURE_INPUT
        case FormWanted():
            return AskKind.FORM


def _card_of(session: ChatSession, card_id: UUID, kind: AskKind) -> VisitorCard:
    card: VisitorCard | None = VisitorCard.objects.filter(pk=card_id, session=session, kind=kind).first()
    if card is None:
        raise NotFound()
    return card


def _said(card: VisitorCard, value: str, words: str) -> str:
    """The label of the chosen option, or the visitor's own words."""
    if value:
        options = [Option.model_validate(each) for each in card.payload["options"]]
        label = next((option.label for option in options if option.value == value), None)
        if label is None:
            raise SilasError(ErrorCode.CHOICE_UNKNOWN)
        return label
    if not card.payload["allow_freetext"] or not words:
        raise SilasError(ErrorCode.FREETEXT_NOT_WANTED, gettext("Choose one of the answers."))
    return words


def _require_same_person(session: ChatSession, card: VisitorCard) -> None:
    # Another person may sit at the browser by now.
    if card.customer and card.customer != _customer(session):
        raise SilasError(ErrorCode.CARD_NOT_YOURS)


def _claim(card: VisitorCard, *, status: AskStatus = AskStatus.ANSWERED, **fields: object) -> None:
    """Settle the prompt if it is open and has not expired."""
    moment = now()
    # By one statement: of two answers at once only one finds it open.
    open_now = VisitorCard.objects.filter(pk=card.pk, status=AskStatus.OPEN, expires_at__gt=moment)
    if open_now.update(status=status, settled_at=moment, **fields):
        return
    if card.state == "expired":
        raise SilasError(ErrorCode.CARD_EXPIRED, gettext("This request has expired. Nothing was changed."))
    code = ErrorCode.CARD_WITHDRAWN if card.status == AskStatus.WITHDRAWN else ErrorCode.CARD_DECIDED
    raise SilasError(code, gettext("This was already decided. Nothing else was changed."))


def _customer(session: ChatSession) -> str:
    """Who the visitor has proved to be, now."""
    return session.customer if _is_raised(session) else ""


def _is_raised(session: ChatSession) -> bool:
    return session.level_at(now()) != PUBLIC


def _taint(session: ChatSession) -> Taint:
    return Taint.AUTH if _is_raised(session) else Taint.EXTERNAL


def _tell_stored(session: ChatSession, card: VisitorCard, status: AskStatus) -> None:
    payload = {"ref_id": str(card.pk), "success": status == AskStatus.ANSWERED, "status": status.value}
    sender = Sender.VISITOR if status == AskStatus.ANSWERED else Sender.SYSTEM
    chronicle.append(session, kind=EntryKind.SECURE_STORED, sender=sender, payload=payload, taint=Taint.AUTH)


def _belongs_to(card: VisitorCard) -> str:
    return f"visitor_secret:{card.pk}"


def _note(event: AuditEvent, card: VisitorCard, *, actor: str, **data: str | int | bool) -> None:
    record(event, actor=actor, subject=f"session:{card.session_id}", data={"card": str(card.pk), **data})

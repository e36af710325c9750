"""REST API of cards: what was asked, exactly what an approval of it binds, and how it was answered (spec 5.11).

Reading a card counts as no look at it. A program decides a card with a signature of its own: by a key that a member
has registered for its API key, within the rights of that key, on that member's behalf (ADR 124). It names such a key to
take an approval back as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals import queries
from apps.approvals.cards import lifecycle
from apps.approvals.cards.decision_links import create_decision_link
from apps.approvals.cards.kinds import kind_labels
from apps.approvals.cards.schemas import AnswerDetails, AnswerRefused, ClientSignature
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import (
    ApprovalScope,
    ApprovalState,
    ApprovalVerdict,
    CardKind,
    CardSort,
    CardStatus,
    Deciders,
    DeclineReason,
    PasskeyRule,
    Risk,
    Withdrawal,
)
from apps.approvals.keys import client_keys
from apps.approvals.models import Card, ClientKey, Decision
from apps.approvals.queries import CardFilter
from apps.approvals.tokens.services import revoke_token
from apps.tenants.api_auth import (
    Caller,
    MembersView,
    OwnersView,
    PageRequest,
    PersonAnswer,
    PlaceAnswer,
    RequestSerializer,
    ScopedView,
    api_key_caller,
    uncached,
    validated,
)
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.models import User
from apps.tenants.queries import get_api_key
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

_KINDS = kind_labels()
_WITHDRAWALS = ", ".join(f"`{reason}`" for reason in Withdrawal.values)
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not a member; `forbidden_scope`: the key has scopes"),
}
_INVALID: dict[int, Any] = {400: OpenApiResponse(description="`invalid`: a field is wrong")}
_MISSING: dict[int, Any] = {404: OpenApiResponse(description="`not_found`: unknown or foreign")}


class CardsRequest(PageRequest):
    state = serializers.ChoiceField(choices=CardStatus.choices, required=False)
    risk = serializers.ChoiceField(choices=Risk.choices, required=False)
    kind = serializers.ChoiceField(choices=_KINDS, required=False)
    deployment = serializers.UUIDField(required=False)
    assignee = serializers.UUIDField(required=False, help_text="A member's user id")
    session = serializers.UUIDField(required=False, help_text="The conversation that waits for it")
    waiting_for_customer = serializers.BooleanField(
        required=False, allow_null=True, default=None, help_text="Whether a question to the customer is unanswered"
    )
    sort = serializers.ChoiceField(
        choices=CardSort.choices, default=CardSort.NEWEST, help_text="The order; keep it while you page"
    )


class CardSubjectAnswer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="subject_kind", help_text="Such as `work_item`")
    id = serializers.UUIDField(source="subject_id")


class CardDecisionAnswer(serializers.Serializer[Any]):
    by = PersonAnswer(source="user")
    verdict = serializers.ChoiceField(choices=ApprovalVerdict.choices)
    said = serializers.DictField(help_text="The answer chosen, and what was said or selected with it")
    conditions = serializers.DictField()
    reason = serializers.ChoiceField(
        choices=DeclineReason.choices, source="decline_reason", allow_null=True, help_text="Why it was declined"
    )
    reason_text = serializers.SerializerMethodField(help_text="The note that was given with it, for colleagues")
    at = serializers.DateTimeField(source="decided_at")

    def get_reason_text(self, decision: Decision) -> str:
        return str(decision.said.get("freetext", "")) if decision.verdict == ApprovalVerdict.DECLINED else ""


class CardQuestionAnswer(serializers.Serializer[Any]):
    by = PersonAnswer(source="asker", allow_null=True, help_text="Null for a program")
    seq = serializers.IntegerField(help_text="The question, as a message of the conversation")
    asked_at = serializers.DateTimeField()
    waits_until = serializers.DateTimeField(help_text="Then the card is back in the queue")
    is_waiting = serializers.BooleanField()
    answer_seq = serializers.IntegerField(allow_null=True, help_text="What the customer wrote next; unchecked words")


class CardLine(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=_KINDS)
    state = serializers.ChoiceField(choices=CardStatus.choices)
    risk = serializers.ChoiceField(choices=Risk.choices)
    intent = serializers.CharField(help_text="What would be done")
    rationale = serializers.CharField()
    affected = serializers.CharField()
    about = CardSubjectAnswer(source="*")
    deployment = PlaceAnswer(allow_null=True)
    session_id = serializers.UUIDField(allow_null=True)
    requested_by = serializers.CharField(help_text="`user:…` if a member asked for it")
    assignee = PersonAnswer(allow_null=True)
    payload_hash = serializers.CharField(help_text="What an approval binds")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="Then it counts as declined")
    settled_at = serializers.DateTimeField(allow_null=True)
    withdrawal = serializers.CharField(help_text=f"Why it was withdrawn: {_WITHDRAWALS}, or empty")
    decision = serializers.SerializerMethodField()
    question = serializers.SerializerMethodField(help_text="The last question to the customer about it")

    @extend_schema_field(CardQuestionAnswer(allow_null=True))
    def get_question(self, card: Card) -> Any:
        asked = list(card.questions.all())
        return CardQuestionAnswer(asked[-1]).data if asked else None

    @extend_schema_field(CardDecisionAnswer(allow_null=True))
    def get_decision(self, card: Card) -> Any:
        return CardDecisionAnswer(card.decision).data if hasattr(card, "decision") else None


class CardChoiceAnswer(serializers.Serializer[Any]):
    value = serializers.CharField()
    verdict = serializers.ChoiceField(choices=ApprovalVerdict.choices)
    consequence = serializers.CharField(help_text="What it does, as on the button")


class CardQuorumAnswer(serializers.Serializer[Any]):
    who = serializers.ChoiceField(choices=Deciders.choices, source="policy.who", help_text="Whose approval counts")
    people = serializers.IntegerField(source="policy.people", help_text="How many approvals it takes")
    missing = serializers.IntegerField()
    passkey = serializers.ChoiceField(choices=PasskeyRule.choices, source="policy.passkey")
    own_requests = serializers.BooleanField(
        source="policy.own_requests", help_text="Whether members may approve their own requests"
    )


class CardAnswerAnswer(serializers.Serializer[Any]):
    by = PersonAnswer(source="user")
    verdict = serializers.ChoiceField(choices=ApprovalVerdict.choices)
    said = serializers.DictField()
    conditions = serializers.DictField()
    at = serializers.DateTimeField(source="answered_at")
    passkey = serializers.SerializerMethodField(help_text="Whether a passkey confirmed it")
    key_id = serializers.CharField(help_text="The person's key that signed it; empty for an unsigned answer")
    signature = serializers.CharField(help_text="Ed25519, base64")

    def get_passkey(self, answer: Any) -> bool:
        return answer.step_up is not None


class CardApprovalAnswer(serializers.Serializer[Any]):
    token_id = serializers.UUIDField(source="token.pk")
    state = serializers.ChoiceField(choices=ApprovalState.choices)
    plan_hash = serializers.CharField(source="token.plan_hash", help_text="What it authorizes")
    used = serializers.IntegerField()
    max_executions = serializers.IntegerField(source="token.max_executions")
    issued_at = serializers.DateTimeField(source="token.issued_at")
    expires_at = serializers.DateTimeField(source="token.expires_at")
    key_id = serializers.CharField(source="token.key_id")
    signature = serializers.CharField(source="token.signature", help_text="Ed25519, base64")


class CardDetail(CardLine):
    scope = serializers.ChoiceField(choices=ApprovalScope.choices)
    payload = serializers.JSONField(help_text="Exactly what an approval binds; `payload_hash` is its hash")
    face_hash = serializers.CharField(help_text="The hash of everything that the card shows; part of what is signed")
    facts = serializers.ListField(child=serializers.DictField())
    body = serializers.DictField(help_text="What this kind of card shows beside its payload")
    details = serializers.DictField()
    reads = serializers.ListField(
        child=serializers.DictField(), help_text="The records whose state it shows: book, key, revision"
    )
    choices = CardChoiceAnswer(many=True)
    max_executions = serializers.IntegerField()
    token_seconds = serializers.IntegerField(help_text="How long an approval stays valid after the decision")
    quorum = CardQuorumAnswer(allow_null=True, help_text="Null for a card that is settled or authorizes nothing")
    answers = CardAnswerAnswer(many=True, source="answered", help_text="Everybody's, in order")
    approval = CardApprovalAnswer(allow_null=True)
    supersedes_id = serializers.UUIDField(allow_null=True, help_text="The card that it replaced")
    superseded_by_id = serializers.UUIDField(allow_null=True, help_text="The card that replaced it")


class CardsAnswer(serializers.Serializer[Any]):
    cards = CardLine(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class Cards(MembersView):
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_list",
        tags=["cards"],
        parameters=[CardsRequest],
        responses={200: CardsAnswer, **_REFUSALS, **_INVALID},
    )
    def get(self, request: Request) -> Response:
        """List cards, newest first or the nearest deadline first."""
        values = validated(CardsRequest, request.query_params)
        before, limit, sort = values.pop("before"), values.pop("limit"), CardSort(values.pop("sort"))
        for name, enum in (("state", CardStatus), ("risk", Risk), ("kind", CardKind)):
            if name in values:
                values[name] = enum(values[name])
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.list_cards(CardFilter(**values), before=before, limit=limit, sort=sort)
            return uncached(CardsAnswer({"cards": rows, "next": following}).data)


# What a program signs a decision with.
class SignatureRequest(RequestSerializer):
    face_hash = serializers.RegexField(r"^[0-9a-f]{64}\Z", help_text="`face_hash` of the card that you read")
    answered_at = serializers.DateTimeField(help_text="The time that you signed; within five minutes of now")
    key_id = serializers.CharField(max_length=16)
    signature = serializers.CharField(max_length=120, help_text="Ed25519, base64")


class DecisionRequest(SignatureRequest):
    choice = serializers.CharField(max_length=60, help_text="The value of one of the card's `choices`")
    freetext = serializers.CharField(required=False, default="", max_length=2000, allow_blank=True)
    reason = serializers.ChoiceField(
        choices=DeclineReason.choices,
        required=False,
        allow_null=True,
        default=None,
        help_text="Why it is declined; the customer is told. Part of the signed `said`",
    )
    reason_text = serializers.CharField(
        required=False,
        default="",
        max_length=300,
        allow_blank=True,
        help_text="A note for colleagues with it; `freetext` of the signed `said`",
    )
    selected = serializers.ListField(
        child=serializers.CharField(max_length=200),
        required=False,
        max_length=200,
        help_text="The items of a batch to keep; all of them when the batch is approved as a whole",
    )
    text = serializers.CharField(required=False, default="", help_text="The new wording of a draft", max_length=20000)


OUTCOMES = [
    ("decided", "This answer settled the card"),
    ("waiting", "It counts; policy wants more approvals"),
    ("replaced", "Another card has taken its place"),
]


class AssigneeRequest(RequestSerializer):
    assignee = serializers.UUIDField(allow_null=True, help_text="A member's user id; null to unassign")


class TakeBackRequest(RequestSerializer):
    reason = serializers.CharField(max_length=300, help_text="For people; stays on the approval")
    key_id = serializers.CharField(
        max_length=16, default="", allow_blank=True, help_text="The program's key, with an API key"
    )


class DecisionOutcome(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    card_id = serializers.UUIDField(help_text="The card; for `replaced` the one that took its place")
    state = serializers.ChoiceField(choices=CardStatus.choices)


class OneCardDecision(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_decide",
        tags=["cards"],
        request=DecisionRequest,
        responses={
            200: DecisionOutcome,
            400: OpenApiResponse(description="`invalid`, `choice_unknown`, and what the kind of card refuses"),
            403: OpenApiResponse(
                description="`signature_invalid`; `client_key_rights`; `approver_required`, `owner_required`,"
                " `own_request`; `forbidden_scope`"
            ),
            409: OpenApiResponse(
                description="`card_changed`, `card_decided`, `card_expired`, `card_withdrawn`, `signature_stale`,"
                " `answered_already`, `ticks_unfit`"
            ),
            422: OpenApiResponse(description="A choice or wording that the card does not take"),
            **_MISSING,
            401: OpenApiResponse(description="`not_authenticated`: not an API key"),
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Answer a card with a program's signature of exactly this answer. The same request again changes nothing."""
        values = validated(DecisionRequest, request.data)
        caller = api_key_caller(request, KeyScope.CARDS_DECIDE)
        return uncached(DecisionOutcome(decide_as_program(caller, card_id, values)).data)


def decide_as_program(caller: Caller, card_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a card with the validated values of a `DecisionRequest`; what `DecisionOutcome` shows. Opens its own
    scope; the caller's scope `cards:decide` was checked."""
    details = AnswerDetails(
        freetext=values["reason_text"] or values["freetext"],
        reason=DeclineReason(values["reason"]) if values["reason"] else None,
        selected=values.get("selected", ()),
        text=values["text"] or None,
        ticked=values.get("selected"),
    )

    def answer(card: Card, signature: ClientSignature) -> object:
        return answer_card(
            card.pk,
            user=signature.key.user,
            choice=values["choice"],
            face=values["face_hash"],
            details=details,
            signature=signature,
        )

    return answer_signed(caller, card_id, values, answer)


def answer_signed(
    caller: Caller, card_id: UUID, values: Mapping[str, Any], answer: Callable[[Card, ClientSignature], object]
) -> dict[str, Any]:
    """Answer a card with the program's signature in `values`; what `DecisionOutcome` shows. A signature that is stored
    already answers nothing again. Opens its own scope; the caller's scope `cards:decide` was checked."""
    outcome = None
    with tenant_scope(caller.tenant_id):
        key = client_keys.key_for(values["key_id"], api_key_id=caller.api_key_id)
        card = queries.get_card(card_id)
        if not queries.has_client_answer(card, values["signature"]):
            outcome = answer(card, ClientSignature(key, values["answered_at"], values["signature"]))
        became = _outcome(queries.get_card(card_id))
    if isinstance(outcome, AnswerRefused):  # the refusal is in the audit log, which has committed
        raise SilasError(outcome.code, outcome.message, status=status.HTTP_409_CONFLICT)
    return became


def _outcome(card: Card) -> dict[str, Any]:
    instead = queries.successor_of(card)
    if instead is not None:
        return {"outcome": "replaced", "card_id": instead.pk, "state": instead.state}
    return {"outcome": "waiting" if card.is_open else "decided", "card_id": card.pk, "state": card.state}


class NewDecisionLinkRequest(RequestSerializer):
    member = serializers.UUIDField(help_text="The user id of the member who decides")
    minutes = serializers.IntegerField(default=60, min_value=1, max_value=60, required=False)


class DecisionLinkAnswer(serializers.Serializer[Any]):
    url = serializers.URLField(help_text="Shown only here")
    expires_at = serializers.DateTimeField()


class CardDecisionLinks(ScopedView):
    capability = Capability.DECIDE
    answers_secret = True
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_link",
        tags=["cards"],
        request=NewDecisionLinkRequest,
        responses={
            201: DecisionLinkAnswer,
            403: OpenApiResponse(description="`approver_required`: this member may not decide; `forbidden_scope`"),
            409: OpenApiResponse(
                description="`passkey_missing`: this member has none; `card_decided`, `card_expired`, `card_withdrawn`"
            ),
            **_INVALID,
            **_MISSING,
            401: _REFUSALS[401],
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Create a link with which one member decides the card, once and with their passkey. Send it to them alone."""
        values = validated(NewDecisionLinkRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            link = create_decision_link(
                queries.get_card(card_id),
                queries.get_member(values["member"]),
                expires_in=timedelta(minutes=values["minutes"]),
                actor=self.caller.actor,
            )
            url = urljoin(settings.PASSKEY_ORIGIN or request.build_absolute_uri("/"), link.path)
            answer = DecisionLinkAnswer({"url": url, "expires_at": link.row.expires_at}).data
        return uncached(answer, status.HTTP_201_CREATED)


class ClientKeyAnswer(serializers.Serializer[Any]):
    key_id = serializers.CharField()
    api_key_id = serializers.UUIDField()
    on_behalf_of = PersonAnswer(source="user")
    public_key = serializers.CharField(help_text="Ed25519, hexadecimal")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=ApprovalScope.choices))
    max_risk = serializers.ChoiceField(choices=Risk.choices)
    created_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)


class ClientKeysAnswer(serializers.Serializer[Any]):
    client_keys = ClientKeyAnswer(many=True)


class NewClientKeyRequest(RequestSerializer):
    api_key_id = serializers.UUIDField()
    public_key = serializers.CharField(max_length=64, help_text="Ed25519, hexadecimal; keep the private half")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=ApprovalScope.choices), max_length=len(ApprovalScope), allow_empty=False
    )
    max_risk = serializers.ChoiceField(choices=Risk.choices, default=Risk.MEDIUM, required=False)


class ClientKeys(OwnersView):
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(operation_id="client_keys_list", tags=["cards"], responses={200: ClientKeysAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """List the keys with which programs decide cards, the oldest first, with revoked ones."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ClientKeysAnswer({"client_keys": queries.client_keys()}).data)

    @extend_schema(
        operation_id="client_keys_register",
        tags=["cards"],
        request=NewClientKeyRequest,
        responses={
            201: ClientKeyAnswer,
            409: OpenApiResponse(description="`client_key_known`; `api_key_ended`"),
            422: OpenApiResponse(description="`client_key_invalid`"),
            **_REFUSALS,
            **_INVALID,
            **_MISSING,
        },
    )
    def post(self, request: Request) -> Response:
        """Let a program decide on your behalf. For a member who is logged in: a program cannot give itself this."""
        values = validated(NewClientKeyRequest, request.data)
        if self.caller.person is None:
            raise SilasError(ErrorCode.APPROVER_REQUIRED)
        with tenant_scope(self.caller.tenant_id):
            key = client_keys.register(
                self.caller.person,
                get_api_key(values["api_key_id"]),
                public_key=values["public_key"],
                scopes=[ApprovalScope(scope) for scope in values["scopes"]],
                max_risk=Risk(values["max_risk"]),
            )
            return uncached(ClientKeyAnswer(key).data, status.HTTP_201_CREATED)


class OneClientKey(OwnersView):
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(operation_id="client_keys_revoke", tags=["cards"], responses={204: None, **_REFUSALS, **_MISSING})
    def delete(self, request: Request, key_id: str) -> Response:
        """Let this key decide nothing any more."""
        with tenant_scope(self.caller.tenant_id):
            client_keys.revoke(key_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OneCard(MembersView):
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(operation_id="cards_get", tags=["cards"], responses={200: CardDetail, **_REFUSALS, **_MISSING})
    def get(self, request: Request, card_id: UUID) -> Response:
        """Read a card with what an approval of it binds, who has to approve it, and the answers."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(card_detail(queries.get_card(card_id)))


class CardAssignee(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_assign",
        tags=["cards"],
        request=AssigneeRequest,
        responses={
            200: CardDetail,
            **_REFUSALS,
            **_INVALID,
            **_MISSING,
            409: OpenApiResponse(
                description="`assignee_unfit`: this person can't decide it; `card_decided`, `card_expired`,"
                " `card_withdrawn`"
            ),
        },
    )
    def put(self, request: Request, card_id: UUID) -> Response:
        """Assign a card to a member, or remove the assignment. Everyone else who may decide it still can."""
        wanted = validated(AssigneeRequest, request.data)["assignee"]
        with tenant_scope(self.caller.tenant_id):
            by = {"by": self.caller.user, "actor": self.caller.actor}
            if wanted is None:
                lifecycle.unassign_card(card_id, **by)
            else:
                to = next((user for user in queries.members() if user.pk == wanted), None)
                if to is None:
                    raise NotFound()
                lifecycle.assign_card(card_id, to=to, **by)
            return uncached(card_detail(queries.get_card(card_id)))


class TakeBack(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_take_back",
        tags=["cards"],
        request=TakeBackRequest,
        responses={
            200: CardDetail,
            **_INVALID,
            403: OpenApiResponse(description="`signature_invalid`: no key of this program; `forbidden_scope`"),
            **_MISSING,
            409: OpenApiResponse(description="`token_revoked`: it was taken back already"),
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Revoke the approval of a decided card, on the behalf of the member who registered the program's key. What has
        not begun does not begin."""
        values = validated(TakeBackRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            approval = queries.approval_for(queries.get_card(card_id))
            if approval is None:
                raise NotFound()
            user, key = person_of(self.caller, values["key_id"])
            client_key = key.key_id if key else ""
            revoke_token(approval.token, user=user, reason=values["reason"], client_key=client_key)
            return uncached(card_detail(queries.get_card(card_id)))


def person_of(caller: Caller, key_id: str) -> tuple[User, ClientKey | None]:
    """The member who is logged in, or on whose behalf a program acts, and the program's key. Raises
    `signature_invalid` 403 for a program without a valid key of this id."""
    if caller.person is not None:
        return caller.person, None
    key = client_keys.key_for(key_id, api_key_id=caller.api_key_id)
    return key.user, key


def card_detail(card: Card) -> Any:
    """The data of `CardDetail` for a card that `queries.get_card` returned, in its tenant's scope."""
    successor = queries.successor_of(card)
    card.__dict__.update(
        face_hash=queries.face_hash(card),
        choices=[
            {
                "value": choice.value,
                "verdict": choice.verdict,
                "consequence": card.consequence.get(choice.value, choice.label),
            }
            for choice in card.of_kind.choices_on(card)
        ],
        answered=queries.answers_to(card),
        quorum=queries.quorum_of(card),
        approval=queries.approval_for(card),
        superseded_by_id=successor.pk if successor else None,
    )
    return CardDetail(card).data

"""Store one person's answer to a card, and decide whether it settles the card.

Runs under the card's lock, inside the caller's tenant scope; `cards.services` is the only caller. Every approval is
signed by the person who gives it, and no person's approval counts twice. What policy requires (role, number of people,
passkey, no approval of one's own request) is checked for every approval, and for all of them again when the last one
comes in (spec 5.11).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from apps.approvals import queries, rules
from apps.approvals.cards.schemas import AnswerClaims, ClientSignature, LinkSignature, Policy
from apps.approvals.enums import ApprovalVerdict, Risk
from apps.approvals.keys import signing
from apps.approvals.models import Answer, ApproverKey, Card
from apps.approvals.passkeys import services as passkeys
from apps.approvals.passkeys.schemas import StepUp
from apps.approvals.schemas import from_base64, to_base64
from apps.approvals.tokens import payloads
from apps.tenants.models import User
from apps.tenants.queries import role_of
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

# How far the time that a program signed may lie from ours.
SIGNATURE_AGE = timedelta(minutes=5)
SIGNED = (ApprovalVerdict.APPROVED, ApprovalVerdict.CONDITIONAL)


def take_answer(
    card: Card,
    *,
    user: User,
    verdict: ApprovalVerdict,
    conditions: Mapping[str, object],
    said: Mapping[str, object],
    step_up: str,
    signature: ClientSignature | LinkSignature | None = None,
) -> Answer:
    """Store the person's answer. An approval of a card that binds, with or without conditions, is signed; a program's
    answer on the person's behalf comes with its signature, and one through a decision link with that of a passkey.

    The caller has checked the role. Raises `SilasError`: `owner_required`, `own_request`, `step_up_required`,
    `passkey_missing` 403; `answered_already` 409; `conditions_missing`, `conditions_not_allowed`; and
    `passkeys.PasskeyRejected`, before anything of the answer is written. For a program's answer also
    `client_key_rights`, `signature_invalid` 403 and `signature_stale` 409.
    """
    payloads.payload_hash(conditions)  # refuses what cannot be signed
    if verdict == ApprovalVerdict.CONDITIONAL and not conditions:
        raise SilasError(ErrorCode.CONDITIONS_MISSING)
    # A conditional answer authorizes nothing: the requester comes back with what meets the conditions. On an approval
    # they would be an empty promise, because nothing enforces them.
    if verdict != ApprovalVerdict.CONDITIONAL and conditions:
        raise SilasError(ErrorCode.CONDITIONS_NOT_ALLOWED)
    # The card is locked, so that no second answer comes between this read and the insert.
    if Answer.objects.filter(card=card, user=user, verdict=verdict).exists():
        raise SilasError(
            ErrorCode.ANSWERED_ALREADY,
            gettext("You've already given this answer. Another person has to answer too."),
        )
    answer = Answer(
        card=card,
        user=user,
        verdict=verdict,
        conditions=dict(conditions),
        said=dict(said),
        answered_at=signature.answered_at if isinstance(signature, ClientSignature) else now(),
    )
    match signature:
        case ClientSignature():
            _accept_signature(answer, signature)
        case LinkSignature():
            _sign_through_link(answer, signature)
        case None if verdict in SIGNED and card.of_kind.binds:
            _sign_answer(answer, step_up)
    # An insert, never an update: answers are evidence and are only ever added.
    answer.save(force_insert=True)
    return answer


def _sign_answer(answer: Answer, step_up: str) -> None:
    """Check that policy allows the approval, verify the passkey if one is needed, and sign."""
    card, user = answer.card, answer.user
    if answer.verdict == ApprovalVerdict.APPROVED:
        policy = _require_allowed(answer, askers=(f"user:{user.pk}",))
        proof = passkeys.prove(card, user=user, policy=policy, assertion=step_up)
        answer.step_up = proof.model_dump(mode="json") if proof else None
    _sign(answer)


def _sign_through_link(answer: Answer, given: LinkSignature) -> None:
    """Do the same for an answer of any verdict, with a passkey that signed exactly this answer."""
    if answer.verdict == ApprovalVerdict.APPROVED and answer.card.of_kind.binds:
        _require_allowed(answer, askers=(f"user:{answer.user_id}",))
    subject = passkeys.PasskeySubject.for_answer(answer.card, ApprovalVerdict(answer.verdict), answer.said)
    proof = passkeys.verify_proof(subject, user=answer.user, assertion=given.assertion)
    answer.step_up = proof.model_dump(mode="json")
    _sign(answer)


def _sign(answer: Answer) -> None:
    key = signing.key_for(answer.user)
    answer.key_id, answer.signature = key.key_id, to_base64(signing.sign(key, signed_bytes(answer)))


def _require_allowed(answer: Answer, *, askers: Collection[str]) -> Policy:
    """The policy of the card. Raises `owner_required` and, for a card that one of `askers` asked for, `own_request`."""
    queries.require_certified_policy()
    policy = queries.policy_for(answer.card)
    if role_of(answer.user) not in rules.ROLES_BY_DECIDERS[policy.who]:
        raise SilasError(ErrorCode.OWNER_REQUIRED)
    if answer.card.requested_by in askers and not policy.own_requests:
        raise SilasError(ErrorCode.OWN_REQUEST)
    return policy


def _accept_signature(answer: Answer, given: ClientSignature) -> None:
    """Check that the program's key may give this answer, and verify its signature of it."""
    key, card = given.key, answer.card
    policy = queries.policy_for(card)
    if answer.verdict == ApprovalVerdict.APPROVED:
        policy = _require_allowed(answer, askers=(f"user:{answer.user_id}", f"api_key:{key.api_key_id}"))
    risk, max_risk = Risk(card.risk), Risk(key.max_risk)
    if not rules.client_may_decide(policy, risk, scope=card.scope, scopes=key.scopes, max_risk=max_risk):
        raise SilasError(ErrorCode.CLIENT_KEY_RIGHTS, extra={"scope": card.scope, "risk": card.risk})
    # An old signature could be kept and sent when it suits its holder (replay).
    if abs(now() - given.answered_at) > SIGNATURE_AGE or given.answered_at < card.created_at:
        raise SilasError(ErrorCode.SIGNATURE_STALE)
    if not rules.is_valid_signature(from_base64(given.signature), signed_bytes(answer), bytes.fromhex(key.public_key)):
        raise SilasError(ErrorCode.SIGNATURE_INVALID)
    answer.key_id, answer.signature = key.key_id, given.signature


def settles_card(answer: Answer) -> bool:
    """True if this answer settles its card: any answer but an approval does; an approval does when as many people as
    policy requires have given the same one and still may."""
    if answer.verdict != ApprovalVerdict.APPROVED or not answer.card.of_kind.binds:
        return True
    return len(_matching_approvals(answer)) >= queries.policy_for(answer.card).people


def _matching_approvals(answer: Answer) -> list[Answer]:
    # Signatures are verified again, because anyone who can write rows can write an answer.
    card, policy = answer.card, queries.policy_for(answer.card)
    allowed = queries.eligible_memberships(policy.who, tenant_id=card.tenant_id).values("user_id")
    same = Answer.objects.filter(card=card, verdict=ApprovalVerdict.APPROVED, said=answer.said, user_id__in=allowed)
    genuine = [approval for approval in same.select_related("card") if is_genuine(approval)]
    # The policy may have become stricter since an earlier person answered.
    return [approval for approval in genuine if policy.own_requests or card.requested_by != f"user:{approval.user_id}"]


def is_genuine(answer: Answer) -> bool:
    """True if this person's key signed exactly this answer to this card, with this assertion."""
    public_key = queries.public_key(answer.key_id, user_id=answer.user_id)
    if public_key is None:
        return False
    signature = from_base64(answer.signature)
    # The second is how answers were signed before they included everything on the card; new ones are not.
    candidates = (signed_bytes(answer), signed_bytes(answer, face=""))
    return any(rules.is_valid_signature(signature, candidate, public_key) for candidate in candidates)


def signed_bytes(answer: Answer, *, face: str | None = None) -> bytes:
    """Return what the person signs: their answer and the hash of everything that the card showed. If the card's rows
    are changed later, the bytes differ."""
    return rules.answer_bytes(
        AnswerClaims(
            card_id=str(answer.card_id),
            payload_hash=answer.card.payload_hash,
            face=queries.face_hash(answer.card) if face is None else face,
            user_id=str(answer.user_id),
            verdict=ApprovalVerdict(answer.verdict),
            conditions=answer.conditions,
            said=answer.said,
            answered_at=answer.answered_at,
            step_up=sha256_hex(answer.step_up) if answer.step_up else "",
        )
    )


def token_conditions(answer: Answer) -> dict[str, object]:
    """Return the token conditions that name the answers it rests on, if policy required more than one, or if a program
    signed this one: the token itself is signed with the person's key, which never leaves the platform."""
    is_persons = ApproverKey.objects.filter(key_id=answer.key_id, user_id=answer.user_id).exists()
    if is_persons and queries.policy_for(answer.card).people == 1:
        return {}
    return {rules.ANSWERS: sorted(sha256_hex(signed_bytes(approval)) for approval in _matching_approvals(answer))}


def verify_answer(answer: Answer) -> bool:
    """Verify a stored answer at any later time: its signature, and the passkey's assertion if one was needed."""
    if not is_genuine(answer):
        return False
    return answer.step_up is None or passkeys.proves_answer(answer, StepUp.model_validate(answer.step_up))

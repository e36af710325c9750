"""What did one person say to a card, and is that enough? Runs under the card's lock, inside the caller's tenant scope.

Always holds: a yes is signed by whoever gives it; nobody's yes counts twice; what policy asks of role, number, passkey
and distance from the request is asked of every yes, and of all of them again when the last one is in (spec 5.11).
Called by `cards.decide_card` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.approvals import keys, kinds, payloads, queries, rules
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Answer, Card
from apps.approvals.schemas import AnswerClaims, Policy, StepUp, from_base64, to_base64
from apps.approvals.services import passkeys, proofs
from apps.tenants.queries import role_of
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError

SIGNED = (ApprovalVerdict.APPROVED, ApprovalVerdict.CONDITIONAL)


def take_answer(
    card: Card,
    *,
    user: Any,
    verdict: ApprovalVerdict,
    conditions: Mapping[str, Any],
    said: Mapping[str, Any],
    step_up: str,
) -> Answer:
    """Store what the person said. Where the card binds, a yes, and a yes on conditions, is signed.

    The caller has asked for the role. Raises `SilasError`: `owner_required`, `own_request`, `step_up_required`,
    `passkey_missing` 403; `answered_already` 409; `conditions_missing`, `conditions_not_allowed`; and
    `passkeys.NotBelieved`, before anything of the answer is written.
    """
    _require_fitting(verdict, conditions)
    if Answer.objects.filter(card=card, user=user, verdict=verdict).exists():
        raise SilasError("answered_already", "You have said so already. Somebody else has to answer too.", status=409)
    answer = Answer(
        card=card, user=user, verdict=verdict, conditions=dict(conditions), said=dict(said), answered_at=now()
    )
    if verdict in SIGNED and kinds.kind_of(card.kind).binds:
        _stand_behind(answer, step_up)
    answer.save(force_insert=True)
    return answer


def _stand_behind(answer: Answer, step_up: str) -> None:
    """What makes a yes worth something: it is allowed, proved where policy asks for it, and signed."""
    card, user = answer.card, answer.user
    if answer.verdict == ApprovalVerdict.APPROVED:
        queries.require_certified_policy()
        policy = queries.policy_for(card)
        _require_allowed(card, user, policy)
        proof = passkeys.prove(card, user=user, policy=policy, assertion=step_up)
        answer.step_up = proof.model_dump(mode="json") if proof else None
    key = keys.key_for(user)
    answer.key_id, answer.signature = key.key_id, to_base64(keys.sign(key, signed_bytes(answer)))


def _require_fitting(verdict: ApprovalVerdict, conditions: Mapping[str, Any]) -> None:
    """Conditions stand in a conditional answer, which opens nothing: whoever asked comes back with what meets them.
    A yes with conditions that nobody would hold anybody to is refused."""
    payloads.payload_hash(conditions)
    if verdict == ApprovalVerdict.CONDITIONAL and not conditions:
        raise SilasError("conditions_missing", "Say on which conditions.")
    if verdict != ApprovalVerdict.CONDITIONAL and conditions:
        raise SilasError("conditions_not_allowed", "A yes has no conditions: answer that it depends on them, or edit.")


def _require_allowed(card: Card, user: Any, policy: Policy) -> None:
    if role_of(user) not in rules.WHO[policy.who]:
        raise SilasError("owner_required", "Only an owner can approve this.", status=403)
    if card.requested_by == f"user:{user.pk}" and not policy.own_requests:
        raise SilasError("own_request", "You asked for this yourself. Somebody else has to approve it.", status=403)


def is_enough(answer: Answer) -> bool:
    """Does this answer settle its card? Anything but a yes does; a yes when as many people as policy asks for said the
    same, and each of them still may."""
    if answer.verdict != ApprovalVerdict.APPROVED or not kinds.kind_of(answer.card.kind).binds:
        return True
    return len(_same_yeses(answer)) >= queries.policy_for(answer.card).people


def _same_yeses(answer: Answer) -> list[Answer]:
    """Signatures are looked at again, because whoever can write rows can write an answer."""
    card, policy = answer.card, queries.policy_for(answer.card)
    allowed = queries.able_to_approve(policy.who, tenant_id=card.tenant_id).values("user_id")
    said = Answer.objects.filter(card=card, verdict=ApprovalVerdict.APPROVED, said=answer.said, user_id__in=allowed)
    genuine = [one for one in said.select_related("card") if is_genuine(one)]
    return [one for one in genuine if policy.own_requests or card.requested_by != f"user:{one.user_id}"]


def is_genuine(answer: Answer) -> bool:
    """Did this person's key sign exactly this answer to exactly this card, with exactly this assertion?"""
    public_key = queries.public_key(answer.key_id, user_id=answer.user_id)
    if public_key is None:
        return False
    signature = from_base64(answer.signature)
    # The second is how answers were signed before they named the card's face; none is made so any more.
    candidates = (signed_bytes(answer), signed_bytes(answer, face=""))
    return any(rules.is_signature(signature, each, public_key) for each in candidates)


def signed_bytes(answer: Answer, *, face: str | None = None) -> bytes:
    """What the person signs: their answer, and all that the card showed them. A card that says something else later
    makes other bytes."""
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


def conditions_of(answer: Answer) -> dict[str, Any]:
    """What the token is signed with about the answers it rests on, where more than one was needed."""
    if queries.policy_for(answer.card).people == 1:
        return {}
    return {rules.ANSWERS: sorted(sha256_hex(signed_bytes(one)) for one in _same_yeses(answer))}


def still_holds(answer: Answer) -> bool:
    """For whoever looks later: the signature, and the passkey's assertion where one was asked for."""
    if not is_genuine(answer):
        return False
    return answer.step_up is None or proofs.is_proof(answer, StepUp.model_validate(answer.step_up))

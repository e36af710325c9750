"""Register passkeys (WebAuthn), ask for one, and verify its answer.

A challenge names its purpose, the person and, for a card or another subject, which one and the hash of what an approval
binds. It is valid once and for a few minutes; a signature counter that runs backwards is refused. The checks themselves
are py_webauthn's. A passkey proves who is present; what authorizes a card is still the signed approval (spec 0.5.2).
`begin_action_step_up` and `prove_action` serve rooms above, whose subjects are not cards (ADR 24).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from secrets import token_hex
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from apps.approvals import queries, rules
from apps.approvals.cards.schemas import AnswerRefused, Policy
from apps.approvals.enums import ApprovalVerdict, ChallengePurpose, Risk
from apps.approvals.models import Answer, Card, Passkey, PasskeyChallenge
from apps.approvals.passkeys.schemas import StepUp
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel import webauthn
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id

T = TypeVar("T")

_MOST_PASSKEYS = 20


class PasskeyRejected(SilasError):
    """A passkey's answer does not hold. Raised inside this room only: functions called from outside return
    `AnswerRefused` instead, so that their caller commits the record of it."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.PASSKEY_REFUSED) -> None:
        super().__init__(code, message)


@dataclass(frozen=True)
class PasskeySubject:
    """What a passkey signs for: a purpose, a card or another subject (`kind:id`), and a hash of its content."""

    purpose: ChallengePurpose
    card: Card | None = None
    subject: str = ""
    content: str = ""

    @classmethod
    def for_card(cls, card: Card) -> PasskeySubject:
        # Everything that the card shows is signed, which includes the hash of what an approval binds.
        return cls(ChallengePurpose.STEP_UP, card, content=queries.face_hash(card))

    @classmethod
    def for_opening(cls, card: Card) -> PasskeySubject:
        """For seeing the card on the page of a decision link."""
        return cls(ChallengePurpose.LINK_OPEN, card, content=queries.face_hash(card))

    @classmethod
    def for_answer(cls, card: Card, verdict: ApprovalVerdict, said: Mapping[str, object]) -> PasskeySubject:
        """For exactly this answer to the card, given through a decision link."""
        content = rules.answer_hash(queries.face_hash(card), verdict=verdict, said=said)
        return cls(ChallengePurpose.STEP_UP, card, content=content)


_REGISTRATION = PasskeySubject(ChallengePurpose.REGISTER)


def record_refusal(rejection: PasskeyRejected, *, user: User, subject: PasskeySubject) -> AnswerRefused:
    """Record in the audit log that a passkey was rejected. Nothing else was written; its challenge stays spent."""
    data = {"purpose": subject.purpose.value, "reason": rejection.code}
    about = f"card:{subject.card.pk}" if subject.card else subject.subject
    record(AuditEvent.PASSKEY_REFUSED, actor=f"user:{user.pk}", subject=about, data=data)
    return AnswerRefused(rejection.code, rejection.message)


def begin_registration(user: User, *, rp_id: str, origin: str) -> dict[str, object]:
    """Return the options for `navigator.credentials.create`. `rp_id` is the host name, `origin` has scheme and port.

    Raises `SilasError`: `passkey_needs_a_name` (an IP address cannot have passkeys), `too_many_passkeys`.
    """
    require_role(user, tuple(Role))
    if not webauthn.is_domain_name(rp_id):
        message = gettext(
            "Passkeys need a domain name. Open the console at localhost or at its name, not at an IP address."
        )
        raise SilasError(ErrorCode.PASSKEY_NEEDS_A_NAME, message)
    known = queries.passkeys_of(user)
    if len(known) >= _MOST_PASSKEYS:
        raise SilasError(ErrorCode.TOO_MANY_PASSKEYS, gettext("Remove a passkey that you no longer use first."))
    challenge = _create_challenge(_REGISTRATION, user=user, rp_id=rp_id, origin=origin)
    return webauthn.registration_options(
        user=user,
        challenge=_challenge_bytes(challenge),
        credential_ids=[passkey.credential_id for passkey in known if passkey.rp_id == rp_id],
        rp_id=rp_id,
        rp_name=settings.PASSKEY_RP_NAME,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def finish_registration(user: User, *, name: str, credential: str) -> Passkey | AnswerRefused:
    """Verify and store a new passkey. `credential` is the JSON of the browser's answer.

    Raises `SilasError`: `passkey_known` 409.
    """
    try:
        challenge = _spend_challenge(_open_challenge(credential, _REGISTRATION, user=user))
        registration = run_check(
            lambda: webauthn.verify_registration(
                credential,
                expected_challenge=_challenge_bytes(challenge),
                expected_rp_id=challenge.rp_id,
                expected_origin=challenge.origin,
            )
        )
    except PasskeyRejected as rejection:
        return record_refusal(rejection, user=user, subject=_REGISTRATION)
    credential_id = webauthn.base64url_encode(registration.credential_id)
    if Passkey.objects.filter(credential_id=credential_id).exists():
        raise SilasError(ErrorCode.PASSKEY_KNOWN, gettext("This passkey is registered already."))
    passkey: Passkey = Passkey.objects.create(
        user=user,
        name=name.strip()[:60] or "Passkey",
        credential_id=credential_id,
        public_key=registration.credential_public_key,
        rp_id=challenge.rp_id,
        sign_count=registration.sign_count,
        created_at=now(),
    )
    record(AuditEvent.PASSKEY_ADDED, actor=f"user:{user.pk}", subject=f"passkey:{passkey.pk}")
    return passkey


def remove_passkey(passkey_id: UUID, *, user: User, actor: str) -> None:
    """Take one of the person's passkeys out of use. The row stays, as evidence for what it signed."""
    changed = Passkey.objects.filter(pk=passkey_id, user=user, removed_at=None).update(removed_at=now())
    if not changed:
        raise NotFound()
    record(AuditEvent.PASSKEY_REMOVED, actor=actor, subject=f"passkey:{passkey_id}")


def rename_passkey(passkey_id: UUID, *, user: User, name: str) -> None:
    new_name = name.strip()[:60]
    if not new_name or not Passkey.objects.filter(pk=passkey_id, user=user, removed_at=None).update(name=new_name):
        raise NotFound()


def begin_step_up(card_id: UUID, *, user: User, face: str, rp_id: str, origin: str) -> dict[str, object] | None:
    """Return the options for `navigator.credentials.get` before this person approves this card; None if no passkey is
    needed. `face` is the hash of what the page showed (`queries.face_hash`).

    Raises `SilasError`: `card_changed` 409; `passkey_missing` 403 when policy asks for one; `passkey_elsewhere` 409
    when the person's passkeys belong to another address.
    """
    card = queries.get_card(card_id)
    queries.require_unchanged(card, face)
    if not _card_needs_passkey(card, user, queries.policy_for(card)):
        return None
    return begin_proof(PasskeySubject.for_card(card), user=user, rp_id=rp_id, origin=origin)


def begin_action_step_up(
    subject: PasskeySubject, *, risk: Risk, user: User, rp_id: str, origin: str
) -> dict[str, object] | None:
    """Do the same as `begin_step_up` for an action about something that is not a card. Raises the same."""
    if not _action_needs_passkey(risk, user):
        return None
    return begin_proof(subject, user=user, rp_id=rp_id, origin=origin)


def begin_proof(subject: PasskeySubject, *, user: User, rp_id: str, origin: str) -> dict[str, object]:
    """Return the options for `navigator.credentials.get` with which this person signs the subject, regardless of
    policy.

    Raises `SilasError`: `passkey_missing` 403; `passkey_elsewhere` 409.
    """
    here = queries.passkeys_of(user, rp_id=rp_id)
    if not here:
        known = ", ".join(sorted({passkey.rp_id for passkey in queries.passkeys_of(user)}))
        if not known:
            raise SilasError(ErrorCode.PASSKEY_MISSING)
        raise SilasError(
            ErrorCode.PASSKEY_ELSEWHERE,
            gettext("Your passkey works at {known}; open the console there.").format(known=known),
        )
    challenge = _create_challenge(subject, user=user, rp_id=rp_id, origin=origin)
    return webauthn.authentication_options(
        challenge=_challenge_bytes(challenge),
        credential_ids=[passkey.credential_id for passkey in here],
        rp_id=rp_id,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def prove(card: Card, *, user: User, policy: Policy, assertion: str) -> StepUp | None:
    """Verify the assertion behind an approval and return it as proof; None if policy needs none. Spends the challenge.

    Raises `SilasError`: `passkey_missing`, `step_up_required` 403; `PasskeyRejected`.
    """
    if not _card_needs_passkey(card, user, policy):
        return None
    return verify_proof(PasskeySubject.for_card(card), user=user, assertion=assertion)


def prove_action(subject: PasskeySubject, *, risk: Risk, user: User, assertion: str) -> StepUp | AnswerRefused | None:
    """Do the same as `prove` for an action about something that is not a card. A rejected passkey is recorded and
    returned as `AnswerRefused`, which the caller should commit."""
    if not _action_needs_passkey(risk, user):
        return None
    try:
        return verify_proof(subject, user=user, assertion=assertion)
    except PasskeyRejected as rejection:
        return record_refusal(rejection, user=user, subject=subject)


def verify_proof(subject: PasskeySubject, *, user: User, assertion: str) -> StepUp:
    """Verify the assertion that `begin_proof` asked for and return it as proof. Spends the challenge.

    Raises `SilasError`: `step_up_required` 403; `PasskeyRejected`.
    """
    if not assertion:
        raise SilasError(ErrorCode.STEP_UP_REQUIRED)
    challenge = _spend_challenge(_open_challenge(assertion, subject, user=user))
    credential_id = str(json.loads(assertion).get("id", ""))
    # The credential's id is the browser's word, so it is looked up among this person's own passkeys.
    passkey: Passkey | None = Passkey.objects.filter(user=user, credential_id=credential_id, removed_at=None).first()
    if passkey is None:
        raise PasskeyRejected(gettext("This passkey isn't registered to your account."))
    verified = run_check(lambda: verify_assertion(assertion, passkey.public_key, challenge))
    _raise_counter(passkey, verified.new_sign_count)
    response = json.loads(assertion)["response"]
    return StepUp(
        passkey_id=str(passkey.pk),
        credential_id=passkey.credential_id,
        public_key=webauthn.base64url_encode(bytes(passkey.public_key)),
        client_data=response["clientDataJSON"],
        authenticator_data=response["authenticatorData"],
        signature=response["signature"],
        nonce=challenge.nonce,
        rp_id=challenge.rp_id,
        origin=challenge.origin,
    )


def _card_needs_passkey(card: Card, user: User, policy: Policy) -> bool:
    if not card.of_kind.binds:
        return False
    has_one = queries.has_passkey(user)
    needed = rules.needs_passkey(policy, Risk(card.risk), has_one=has_one)
    return _require_passkey_if(needed, has_one=has_one)


def _action_needs_passkey(risk: Risk, user: User) -> bool:
    return _require_passkey_if(queries.needs_passkey(risk, user), has_one=queries.has_passkey(user))


def _require_passkey_if(needed: bool, *, has_one: bool) -> bool:
    if needed and not has_one:
        raise SilasError(ErrorCode.PASSKEY_MISSING)
    return needed


def _create_challenge(subject: PasskeySubject, *, user: User, rp_id: str, origin: str) -> PasskeyChallenge:
    moment = now()
    PasskeyChallenge.objects.filter(user=user, expires_at__lt=moment).delete()
    challenge: PasskeyChallenge = PasskeyChallenge.objects.create(
        user=user,
        purpose=subject.purpose,
        card=subject.card,
        subject=subject.subject,
        payload_hash=subject.content,
        nonce=token_hex(32),
        rp_id=rp_id,
        origin=origin,
        created_at=moment,
        expires_at=moment + timedelta(seconds=settings.PASSKEY_SECONDS),
    )
    return challenge


def _challenge_bytes(challenge: PasskeyChallenge) -> bytes:
    return rules.challenge_bytes(
        purpose=challenge.purpose,
        tenant_id=str(challenge.tenant_id or current_tenant_id()),
        user_id=str(challenge.user_id),
        card_id=str(challenge.card_id or ""),
        subject=challenge.subject,
        payload_hash=challenge.payload_hash,
        nonce=challenge.nonce,
    )


def _read_challenge(answer: str) -> bytes:
    try:
        return webauthn.read_challenge(answer)
    except ValueError:
        raise PasskeyRejected(gettext("We couldn't read the passkey's response.")) from None


def _open_challenge(answer: str, subject: PasskeySubject, *, user: User) -> PasskeyChallenge:
    """Return our open challenge that this answers: made for this person, this purpose, and this subject as it is."""
    signed = _read_challenge(answer)
    challenges: QuerySet[PasskeyChallenge] = PasskeyChallenge.objects.filter(
        user=user,
        purpose=subject.purpose,
        card=subject.card,
        subject=subject.subject,
        payload_hash=subject.content,
        spent_at=None,
        expires_at__gt=now(),
    )
    # Several may be open at once, for example in two windows.
    for challenge in challenges:
        if _challenge_bytes(challenge) == signed:
            return challenge
    raise PasskeyRejected(gettext("That took too long or belongs to something else. Try again."))


def _spend_challenge(challenge: PasskeyChallenge) -> PasskeyChallenge:
    # A conditional update: of two answers to one challenge only one counts (replay).
    if not PasskeyChallenge.objects.filter(pk=challenge.pk, spent_at=None).update(spent_at=now()):
        raise PasskeyRejected(gettext("This request was already answered."))
    return challenge


def verify_assertion(assertion: str, public_key: Any, challenge: PasskeyChallenge) -> Any:
    return webauthn.verify_authentication(
        assertion,
        expected_challenge=_challenge_bytes(challenge),
        expected_rp_id=challenge.rp_id,
        expected_origin=challenge.origin,
        credential_public_key=bytes(public_key),
        credential_current_sign_count=0,  # `_raise_counter` checks it
    )


def run_check(check: Callable[[], T]) -> T:
    """Run a check of the WebAuthn library. It parses hostile bytes, so any error that it raises is a rejection."""
    try:
        return check()
    except Exception as error:
        raise PasskeyRejected(gettext("We couldn't verify the passkey.")) from error


def _raise_counter(passkey: Passkey, sign_count: int) -> None:
    # A counter that does not rise means that the passkey was copied; 0 for ever means that it has none.
    if (sign_count or passkey.sign_count) and sign_count <= passkey.sign_count:
        raise PasskeyRejected(
            gettext("This passkey may have been copied, so it was not accepted."), ErrorCode.PASSKEY_COUNTER
        )
    unchanged = Passkey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    if not unchanged.update(sign_count=sign_count, last_used_at=now()):
        raise PasskeyRejected(gettext("This passkey was used at the same time. Try again."), ErrorCode.PASSKEY_COUNTER)


def proves_answer(answer: Answer, proof: StepUp) -> bool:
    """True if the stored assertion still proves that this person's passkey signed exactly this answer."""
    subject = PasskeySubject.for_card(answer.card)
    through_link = PasskeySubject.for_answer(answer.card, ApprovalVerdict(answer.verdict), answer.said)
    # The last is what passkeys signed before they signed everything on the card; no new challenge is made so.
    candidates = (subject, through_link, replace(subject, content=answer.card.payload_hash))
    return any(proves(candidate, proof, user_id=answer.user_id, tenant_id=answer.tenant_id) for candidate in candidates)


def proves(subject: PasskeySubject, proof: StepUp, *, user_id: UUID, tenant_id: UUID) -> bool:
    """True if the stored assertion still proves that this person's passkey signed exactly this subject."""
    passkey = Passkey.objects.filter(pk=proof.passkey_id, user_id=user_id).first()
    # The proof carries a key of its own: unless it is the stored one, a forged proof would verify itself.
    if passkey is None or webauthn.base64url_encode(bytes(passkey.public_key)) != proof.public_key:
        return False
    challenge = PasskeyChallenge(
        tenant_id=tenant_id,
        user_id=user_id,
        purpose=subject.purpose,
        card=subject.card,
        subject=subject.subject,
        payload_hash=subject.content,
        nonce=proof.nonce,
        rp_id=proof.rp_id,
        origin=proof.origin,
    )
    response = {
        "clientDataJSON": proof.client_data,
        "authenticatorData": proof.authenticator_data,
        "signature": proof.signature,
    }
    assertion = json.dumps(
        {"id": proof.credential_id, "rawId": proof.credential_id, "type": "public-key", "response": response}
    )
    try:
        run_check(lambda: verify_assertion(assertion, passkey.public_key, challenge))
    except PasskeyRejected:
        return False
    return True

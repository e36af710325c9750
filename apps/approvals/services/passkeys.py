"""Was it really this person? Passkeys (WebAuthn): registering them, asking one, and believing its answer.

Always holds: a challenge names its purpose, the person and, for a card or another subject, which one and the hash of
what the yes binds; it is good once and for a few minutes; a counter that runs backwards is refused. The checks
themselves are py_webauthn's. A passkey shows who pressed; what authorizes a card is still the signed approval (spec
0.5.2). `begin_press` and `prove_press` are for rooms above, whose subjects are no cards (ADR 65).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.approvals import kinds, queries, rules
from apps.approvals.enums import ChallengePurpose, Risk
from apps.approvals.models import Card, Passkey, PasskeyChallenge
from apps.approvals.schemas import Policy, Refused, StepUp
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.queries import require_role
from kernel import webauthn
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id

_MOST_PASSKEYS = 20


class NotBelieved(SilasError):
    """Raised within this room only: whoever is called from outside answers `refused` instead, and commits."""

    def __init__(self, message: str, code: str = "passkey_refused") -> None:
        super().__init__(code, message, status=409)


@dataclass(frozen=True)
class About:
    """What an answer stands behind: its purpose, a card or other subject (`kind:id`), and a hash of what that says."""

    purpose: ChallengePurpose
    card: Card | None = None
    subject: str = ""
    content: str = ""

    @classmethod
    def of(cls, card: Card) -> About:
        """A card is signed with all that it shows, which includes the hash of what an approval binds."""
        return cls(ChallengePurpose.STEP_UP, card, content=queries.face_hash(card))


_REGISTERING = About(ChallengePurpose.REGISTER)


def refused(no: NotBelieved, *, user: Any, about: About) -> Refused:
    """Write down that a passkey's answer did not hold. Nothing else was written; its challenge stays spent."""
    data = {"purpose": about.purpose.value, "reason": no.code}
    subject = f"card:{about.card.pk}" if about.card else about.subject
    record(AuditEvent.PASSKEY_REFUSED, actor=f"user:{user.pk}", subject=subject, data=data)
    return Refused(no.code, no.message)


def begin_registration(user: Any, *, rp_id: str, origin: str) -> dict[str, Any]:
    """What `navigator.credentials.create` is called with. `rp_id`: the host's name; `origin`: with scheme and port.

    Raises `SilasError`: `passkey_needs_a_name` (at a bare address there are no passkeys), `too_many_passkeys`.
    """
    require_role(user, tuple(Role))
    _require_name(rp_id)
    known = queries.passkeys_of(user)
    if len(known) >= _MOST_PASSKEYS:
        raise SilasError("too_many_passkeys", "Remove a passkey that you no longer use first.", status=409)
    challenge = _challenge(_REGISTERING, user=user, rp_id=rp_id, origin=origin)
    return webauthn.registration_options(
        user=user,
        challenge=_bytes_of(challenge),
        credential_ids=[one.credential_id for one in known if one.rp_id == rp_id],
        rp_id=rp_id,
        rp_name=settings.PASSKEY_RP_NAME,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def finish_registration(user: Any, *, name: str, credential: str) -> Passkey | Refused:
    """Believe a new passkey, or not. `credential`: the JSON of what the browser answered.

    Raises `SilasError`: `passkey_known` 409.
    """
    try:
        challenge = _spend(_asked(credential, _REGISTERING, user=user))
        found = believed(lambda: _registered(credential, challenge))
    except NotBelieved as no:
        return refused(no, user=user, about=_REGISTERING)
    credential_id = webauthn.base64url_encode(found.credential_id)
    if Passkey.objects.filter(credential_id=credential_id).exists():
        raise SilasError("passkey_known", "This passkey is registered already.", status=409)
    passkey: Passkey = Passkey.objects.create(
        user=user,
        name=name.strip()[:60] or "Passkey",
        credential_id=credential_id,
        public_key=found.credential_public_key,
        rp_id=challenge.rp_id,
        sign_count=found.sign_count,
        created_at=now(),
    )
    record(AuditEvent.PASSKEY_ADDED, actor=f"user:{user.pk}", subject=f"passkey:{passkey.pk}")
    return passkey


def _registered(credential: str, challenge: PasskeyChallenge) -> Any:
    return webauthn.verify_registration(
        credential,
        expected_challenge=_bytes_of(challenge),
        expected_rp_id=challenge.rp_id,
        expected_origin=challenge.origin,
    )


def remove_passkey(passkey_id: UUID, *, user: Any, actor: str) -> None:
    """Take one of the person's passkeys out of use; it stays on record for what it stood behind."""
    changed = Passkey.objects.filter(pk=passkey_id, user=user, removed_at=None).update(removed_at=now())
    if not changed:
        raise NotFound("passkey")
    record(AuditEvent.PASSKEY_REMOVED, actor=actor, subject=f"passkey:{passkey_id}")


def rename_passkey(passkey_id: UUID, *, user: Any, name: str) -> None:
    called = name.strip()[:60]
    if not called or not Passkey.objects.filter(pk=passkey_id, user=user, removed_at=None).update(name=called):
        raise NotFound("passkey")


def begin_step_up(card_id: UUID, *, user: Any, face: str, rp_id: str, origin: str) -> dict[str, Any] | None:
    """What `navigator.credentials.get` is called with before this person's approval of this card; None when none is
    needed. `face`: what the page showed (`queries.face_hash`).

    Raises `SilasError`: `card_changed` 409; `passkey_missing` 403 when policy asks for one; `passkey_elsewhere` 409
    when the person's passkeys belong to another address.
    """
    card = queries.card(card_id)
    queries.require_shown(card, face)
    if not _is_wanted(card, user, queries.policy_for(card)):
        return None
    return _question(About.of(card), user=user, rp_id=rp_id, origin=origin)


def begin_press(about: About, *, risk: Risk, user: Any, rp_id: str, origin: str) -> dict[str, Any] | None:
    """`begin_step_up` for a press about something that is no card. Raises the same."""
    if not _press_is_wanted(risk, user):
        return None
    return _question(about, user=user, rp_id=rp_id, origin=origin)


def _question(about: About, *, user: Any, rp_id: str, origin: str) -> dict[str, Any]:
    here = queries.passkeys_of(user, rp_id=rp_id)
    if not here:
        known = ", ".join(sorted({one.rp_id for one in queries.passkeys_of(user)}))
        raise SilasError("passkey_elsewhere", f"Your passkey works at {known}; open the console there.", status=409)
    challenge = _challenge(about, user=user, rp_id=rp_id, origin=origin)
    return webauthn.authentication_options(
        challenge=_bytes_of(challenge),
        credential_ids=[one.credential_id for one in here],
        rp_id=rp_id,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def prove(card: Card, *, user: Any, policy: Policy, assertion: str) -> StepUp | None:
    """The believed assertion behind this yes; None when policy asks for none. Spends its challenge.

    Raises `SilasError`: `passkey_missing`, `step_up_required` 403; `NotBelieved`.
    """
    if not _is_wanted(card, user, policy):
        return None
    return _proved(About.of(card), user=user, assertion=assertion)


def prove_press(about: About, *, risk: Risk, user: Any, assertion: str) -> StepUp | Refused | None:
    """`prove` for a press about something that is no card; what is not believed is written down and answered with
    `Refused`, which the caller commits."""
    if not _press_is_wanted(risk, user):
        return None
    try:
        return _proved(about, user=user, assertion=assertion)
    except NotBelieved as no:
        return refused(no, user=user, about=about)


def _proved(about: About, *, user: Any, assertion: str) -> StepUp:
    if not assertion:
        raise SilasError("step_up_required", "Confirm this with your passkey.", status=403)
    challenge = _spend(_asked(assertion, about, user=user))
    passkey = _passkey_of(assertion, user)
    found = believed(lambda: verify(assertion, passkey.public_key, challenge))
    _count(passkey, found.new_sign_count)
    return _proof(assertion, passkey, challenge)


def _is_wanted(card: Card, user: Any, policy: Policy) -> bool:
    if not kinds.kind_of(card.kind).binds:
        return False
    has_one = queries.has_passkey(user)
    return _possible(rules.wants_passkey(policy, Risk(card.risk), has_one=has_one), has_one=has_one)


def _press_is_wanted(risk: Risk, user: Any) -> bool:
    return _possible(queries.passkey_wanted(risk, user), has_one=queries.has_passkey(user))


def _possible(wanted: bool, *, has_one: bool) -> bool:
    if wanted and not has_one:
        raise SilasError("passkey_missing", "This needs a passkey, and you have none. Add one first.", status=403)
    return wanted


def _require_name(rp_id: str) -> None:
    if not webauthn.is_domain_name(rp_id):
        message = "Passkeys belong to a name. Open the console at localhost or at its name, not at numbers."
        raise SilasError("passkey_needs_a_name", message)


def _challenge(about: About, *, user: Any, rp_id: str, origin: str) -> PasskeyChallenge:
    moment = now()
    PasskeyChallenge.objects.filter(user=user, expires_at__lt=moment).delete()
    made: PasskeyChallenge = PasskeyChallenge.objects.create(
        user=user,
        purpose=about.purpose,
        card=about.card,
        subject=about.subject,
        payload_hash=about.content,
        nonce=token_hex(32),
        rp_id=rp_id,
        origin=origin,
        created_at=moment,
        expires_at=moment + timedelta(seconds=settings.PASSKEY_SECONDS),
    )
    return made


def _bytes_of(challenge: PasskeyChallenge) -> bytes:
    return rules.challenge_bytes(
        purpose=challenge.purpose,
        tenant_id=str(challenge.tenant_id or current_tenant_id()),
        user_id=str(challenge.user_id),
        card_id=str(challenge.card_id or ""),
        subject=challenge.subject,
        payload_hash=challenge.payload_hash,
        nonce=challenge.nonce,
    )


def _asked(answered: str, about: About, *, user: Any) -> PasskeyChallenge:
    """The open challenge of ours that this answers: made for this person, this purpose, and this subject as it is."""
    signed = _challenge_in(answered)
    open_ones = PasskeyChallenge.objects.filter(
        user=user,
        purpose=about.purpose,
        card=about.card,
        subject=about.subject,
        payload_hash=about.content,
        spent_at=None,
        expires_at__gt=now(),
    )
    found: PasskeyChallenge | None = next((one for one in open_ones if _bytes_of(one) == signed), None)
    if found is None:
        raise NotBelieved("That took too long or belongs to something else. Try again.")
    return found


def _challenge_in(answered: str) -> bytes:
    try:
        return webauthn.read_challenge(answered)
    except ValueError:
        raise NotBelieved("The passkey's answer could not be read.") from None


def _spend(challenge: PasskeyChallenge) -> PasskeyChallenge:
    if not PasskeyChallenge.objects.filter(pk=challenge.pk, spent_at=None).update(spent_at=now()):
        raise NotBelieved("This was answered already.")
    return challenge


def _passkey_of(assertion: str, user: Any) -> Passkey:
    credential_id = str(json.loads(assertion).get("id", ""))
    found: Passkey | None = Passkey.objects.filter(user=user, credential_id=credential_id, removed_at=None).first()
    if found is None:
        raise NotBelieved("This passkey is not one of yours.")
    return found


def verify(assertion: str, public_key: Any, challenge: PasskeyChallenge) -> Any:
    return webauthn.verify_authentication(
        assertion,
        expected_challenge=_bytes_of(challenge),
        expected_rp_id=challenge.rp_id,
        expected_origin=challenge.origin,
        credential_public_key=bytes(public_key),
        credential_current_sign_count=0,  # `_count` looks at it
    )


def believed(check: Callable[[], Any]) -> Any:
    """What the library found. It meets hostile bytes, and whatever it stumbles over is a no."""
    try:
        return check()
    except Exception as error:
        raise NotBelieved("The passkey's answer does not hold.") from error


def _count(passkey: Passkey, counted: int) -> None:
    """A counter that does not rise means that somebody has a copy; 0 for ever means that there is none."""
    if (counted or passkey.sign_count) and counted <= passkey.sign_count:
        raise NotBelieved("This passkey may have been copied. It was not believed.", "passkey_counter")
    unchanged = Passkey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    if not unchanged.update(sign_count=counted, last_used_at=now()):
        raise NotBelieved("This passkey was used at the same time. Try again.", "passkey_counter")


def _proof(assertion: str, passkey: Passkey, challenge: PasskeyChallenge) -> StepUp:
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

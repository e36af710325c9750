"""Does a stored answer of a passkey still prove what it stood behind? Checked again from what was kept."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

from apps.approvals.models import Answer, Passkey, PasskeyChallenge
from apps.approvals.schemas import StepUp
from apps.approvals.services import passkeys
from kernel import webauthn


def is_proof(answer: Answer, proof: StepUp) -> bool:
    """Does the stored assertion still prove that this person's passkey stood behind exactly this answer?"""
    about = passkeys.About.of(answer.card)
    # The second is what passkeys signed before they signed the card's face; no challenge is made so any more.
    candidates = (about, replace(about, content=answer.card.payload_hash))
    who = {"user_id": answer.user_id, "tenant_id": answer.tenant_id}
    return any(still_proves(each, proof, **who) for each in candidates)


def still_proves(about: passkeys.About, proof: StepUp, *, user_id: UUID, tenant_id: UUID) -> bool:
    """Does the stored assertion still prove that this person's passkey stood behind exactly this?"""
    passkey = Passkey.objects.filter(pk=proof.passkey_id, user_id=user_id).first()
    if passkey is None or webauthn.base64url_encode(bytes(passkey.public_key)) != proof.public_key:
        return False
    asked = PasskeyChallenge(
        tenant_id=tenant_id,
        user_id=user_id,
        purpose=about.purpose,
        card=about.card,
        subject=about.subject,
        payload_hash=about.content,
        nonce=proof.nonce,
        rp_id=proof.rp_id,
        origin=proof.origin,
    )
    try:
        passkeys.believed(lambda: passkeys.verify(_as_assertion(proof), passkey.public_key, asked))
    except passkeys.NotBelieved:
        return False
    return True


def _as_assertion(proof: StepUp) -> str:
    response = {
        "clientDataJSON": proof.client_data,
        "authenticatorData": proof.authenticator_data,
        "signature": proof.signature,
    }
    return json.dumps(
        {"id": proof.credential_id, "rawId": proof.credential_id, "type": "public-key", "response": response}
    )

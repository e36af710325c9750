"""A passkey's assertion, as it is stored beside the answer that it was given for."""

from __future__ import annotations

from apps.approvals.schemas import FrozenModel


class StepUp(FrozenModel):
    """A passkey's assertion with everything needed to verify it again. Binary values are base64url."""

    passkey_id: str
    credential_id: str
    public_key: str
    client_data: str
    authenticator_data: str
    signature: str
    nonce: str
    rp_id: str
    origin: str

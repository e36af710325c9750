"""Build the options of WebAuthn ceremonies and verify a browser's answers with py_webauthn. Stores nothing.

py_webauthn loads every attestation format, so it is imported at first use and not at every start. Used by approvals
(before grave approvals) and by tenants (login), so that neither has checks of its own.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from typing import Any


def registration_options(
    *, user: Any, challenge: bytes, credential_ids: Iterable[str], resident: bool = False, **relying_party: Any
) -> dict[str, object]:
    """Options for `navigator.credentials.create`.

    `credential_ids` are the person's existing passkeys here; `resident` makes the passkey discoverable without a user
    name.
    """
    import webauthn
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_registration_options(
        user_id=user.pk.bytes,
        user_name=user.email,
        user_display_name=user.display_name,
        challenge=challenge,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED
            if resident
            else structs.ResidentKeyRequirement.DISCOURAGED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        # The authenticator refuses a second registration of the same person.
        exclude_credentials=_descriptors(credential_ids),
        **relying_party,
    )
    return options_to_json_dict(options)


def authentication_options(
    *, challenge: bytes, credential_ids: Iterable[str], **relying_party: Any
) -> dict[str, object]:
    """Options for `navigator.credentials.get`."""
    import webauthn
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_authentication_options(
        challenge=challenge,
        allow_credentials=_descriptors(credential_ids),
        user_verification=structs.UserVerificationRequirement.REQUIRED,
        **relying_party,
    )
    return options_to_json_dict(options)


def verify_registration(credential: str, **expected: Any) -> Any:
    import webauthn

    # User verification is required, so that a found or borrowed key alone proves nothing.
    return webauthn.verify_registration_response(credential=credential, require_user_verification=True, **expected)


def verify_authentication(assertion: str, **expected: Any) -> Any:
    import webauthn

    return webauthn.verify_authentication_response(credential=assertion, require_user_verification=True, **expected)


def is_domain_name(rp_id: str) -> bool:
    """Whether passkeys can belong to this host: they cannot belong to an IP address."""
    try:
        ipaddress.ip_address(rp_id.strip("[]"))
    except ValueError:
        return True
    return False


def read_challenge(answered: str) -> bytes:
    """The challenge that a browser's response answers. Raises `ValueError` if it cannot be read."""
    try:
        client_data = json.loads(base64url_decode(json.loads(answered)["response"]["clientDataJSON"]))
        return base64url_decode(client_data["challenge"])
    # The answer is the browser's: any JSON may come, of any shape and depth.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("no answer of a passkey") from None


def base64url_encode(raw: bytes) -> str:
    from webauthn.helpers import bytes_to_base64url

    return bytes_to_base64url(raw)


def base64url_decode(text: str) -> bytes:
    from webauthn.helpers import base64url_to_bytes

    return base64url_to_bytes(text)


def _descriptors(credential_ids: Iterable[str]) -> list[Any]:
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor

    return [PublicKeyCredentialDescriptor(id=base64url_decode(one)) for one in credential_ids]

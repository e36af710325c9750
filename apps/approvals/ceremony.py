"""What is asked of py_webauthn? Options for a browser, and whether its answer holds. No rows.

The library brings every format of attestation there is: whoever first uses a passkey imports it, not every process.
Called by `services.passkeys` only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def registration_options(*, user: Any, challenge: bytes, known: Iterable[str], **place: Any) -> dict[str, Any]:
    """What `navigator.credentials.create` is called with. `known`: ids of the person's passkeys here."""
    import webauthn
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_registration_options(
        user_id=user.pk.bytes,
        user_name=user.email,
        user_display_name=user.display_name,
        challenge=challenge,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.DISCOURAGED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=_descriptors(known),
        **place,
    )
    return options_to_json_dict(options)


def authentication_options(*, challenge: bytes, known: Iterable[str], **place: Any) -> dict[str, Any]:
    """What `navigator.credentials.get` is called with."""
    import webauthn
    from webauthn.helpers import options_to_json_dict, structs

    options = webauthn.generate_authentication_options(
        challenge=challenge,
        allow_credentials=_descriptors(known),
        user_verification=structs.UserVerificationRequirement.REQUIRED,
        **place,
    )
    return options_to_json_dict(options)


def registered(credential: str, **expected: Any) -> Any:
    import webauthn

    return webauthn.verify_registration_response(credential=credential, require_user_verification=True, **expected)


def verified(assertion: str, **expected: Any) -> Any:
    import webauthn

    return webauthn.verify_authentication_response(credential=assertion, require_user_verification=True, **expected)


def written(raw: bytes) -> str:
    from webauthn.helpers import bytes_to_base64url

    return bytes_to_base64url(raw)


def unwritten(text: str) -> bytes:
    from webauthn.helpers import base64url_to_bytes

    return base64url_to_bytes(text)


def _descriptors(credential_ids: Iterable[str]) -> list[Any]:
    from webauthn.helpers.structs import PublicKeyCredentialDescriptor

    return [PublicKeyCredentialDescriptor(id=unwritten(one)) for one in credential_ids]

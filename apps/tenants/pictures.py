"""Store, remove and find the logo and avatar of a chatbot.

What is stored is what was uploaded, byte for byte, once its header says that it is a small picture. The file name under
which it is served contains its hash, so another picture has another address.
"""

from __future__ import annotations

from apps.tenants.enums import PictureKind
from apps.tenants.locks import lock_deployment
from apps.tenants.models import Deployment, DeploymentPicture
from apps.tenants.picture_headers import picture_header
from apps.tenants.services import change_deployment
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

MOST_BYTES = 256 * 1024
LEAST_SIDE, MOST_SIDE = 16, 1024
_HASH_IN_NAME = 32


def store_picture(deployment: Deployment, kind: PictureKind, content: bytes, *, actor: str) -> Deployment:
    """Store a picture in place of an older one. Raises `SilasError`: 413 `picture_too_large`, 400 `picture_kind` and
    `picture_dimensions`. Returns the changed deployment. Inside a scope."""
    if len(content) > MOST_BYTES:
        raise SilasError(ErrorCode.PICTURE_TOO_LARGE)
    header = picture_header(content)
    if header is None:
        raise SilasError(ErrorCode.PICTURE_KIND)
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in (header.width, header.height)):
        raise SilasError(ErrorCode.PICTURE_DIMENSIONS)
    # Of two uploads at once the second adds to what the first has stored.
    locked, digest = lock_deployment(deployment.pk), sha256_hex(content)
    DeploymentPicture.objects.update_or_create(
        deployment=locked,
        kind=kind,
        defaults={"media_type": header.media_type, "sha256": digest, "content": content},
    )
    shown = {"file": f"{digest[:_HASH_IN_NAME]}.{header.ending}", "width": header.width, "height": header.height}
    return change_deployment(locked, actor=actor, pictures={**locked.pictures, kind.value: shown})


def remove_picture(deployment: Deployment, kind: PictureKind, *, actor: str) -> Deployment:
    """Remove a picture, if there is one. Returns the changed deployment. Inside a scope."""
    locked = lock_deployment(deployment.pk)
    DeploymentPicture.objects.filter(deployment=locked, kind=kind).delete()
    left = {name: shown for name, shown in locked.pictures.items() if name != kind}
    return change_deployment(locked, actor=actor, pictures=left)


def copy_pictures(source: Deployment, target: Deployment, *, actor: str) -> None:
    """Give a chatbot the pictures of another one. Inside a scope."""
    for picture in DeploymentPicture.objects.filter(deployment=source):
        store_picture(target, PictureKind(picture.kind), bytes(picture.content), actor=actor)


def picture_at(deployment: Deployment, kind: str, file: str) -> DeploymentPicture | None:
    """The picture that is served under this name now, or None. Inside a scope."""
    if deployment.pictures.get(kind, {}).get("file") != file:
        return None
    found: DeploymentPicture | None = DeploymentPicture.objects.filter(deployment=deployment, kind=kind).first()
    return found

"""Format of a package: a stored zip of `package.json`, its signature, and the skill's files under `skill/`.

The same version signed by the same key is the same bytes. A package that comes is opened in the sandbox (ADR 109), and
nothing of it is kept before everything was checked: shape, signature, the hash of each file, and that no file is
missing or extra.
"""

from __future__ import annotations

import base64
import binascii
import io
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.skills import rules
from kernel.canonical import canonical_bytes, sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from sandbox.archives.reader import BadArchive, Limits, Problem, read_entries
from sandbox.spec import is_safe_relative

FORMAT = "silas-skill-package/1"
MANIFEST, SIGNATURE, FOLDER = "package.json", "package.sig", "skill/"
MAX_BYTES, MAX_FILES, MAX_NAME = 6_000_000, 400, 300
_LIMITS, _SIGHT = Limits(MAX_FILES + 2, MAX_BYTES), Limits(5_000, 50_000_000)
_WHY = {
    Problem.TOO_MANY: "contains too many files, or one twice",
    Problem.TWICE: "contains too many files, or one twice",
    Problem.TOO_LARGE: "is compressed, or claims to contain more than it does",
    Problem.NOT_PLAIN: "contains something that isn't a plain file",
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


class PackageManifest(BaseModel):
    """What the signature covers. `number` is the version's number where it was made: an older one is refused after a
    newer one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = Field(pattern=f"^{FORMAT}$")
    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)
    number: int = Field(ge=1, le=2**31 - 1)
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    files: dict[str, str] = Field(min_length=1, max_length=MAX_FILES)
    public_key: str = Field(pattern=r"^[0-9a-f]{64}$")
    publisher: str = Field(max_length=120)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.public_key)


@dataclass(frozen=True)
class Package:
    """A package that was checked completely. `raw`: the bytes that came."""

    manifest: PackageManifest
    files: dict[str, bytes]
    raw: bytes = field(repr=False)


def fingerprint(public_key: str) -> str:
    """Return what a person compares: eight groups of four characters."""
    digest = sha256_hex(bytes.fromhex(public_key))
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))


def pack(
    name: str,
    number: int,
    files: Mapping[str, bytes],
    *,
    publisher: str,
    public_key: bytes,
    sign: Callable[[bytes], bytes],
) -> bytes:
    manifest = PackageManifest(
        format=FORMAT,
        name=name,
        number=number,
        digest=rules.content_digest(files),
        files={path: sha256_hex(content) for path, content in files.items()},
        public_key=public_key.hex(),
        publisher=publisher,
    )
    manifest_bytes = _canonical_manifest(manifest)
    contents = {MANIFEST: manifest_bytes, SIGNATURE: base64.b64encode(sign(_signed_bytes(manifest_bytes)))}
    contents |= {FOLDER + path: content for path, content in files.items()}
    return _zip(contents)


def is_package(raw: bytes) -> bool:
    """True for bytes that claim to be a package; nothing was checked. Outside of a transaction."""
    if not raw.startswith(b"PK"):
        return False
    try:
        return any(entry.name == MANIFEST for entry in read_entries(raw, _SIGHT, contents=False))
    except BadArchive:
        return False


def unpack(raw: bytes) -> Package:
    """Check and open a package, outside of a transaction. Raises `SilasError` 422: `package_unreadable`,
    `package_signature`, `package_incomplete`, `package_extra_file`, `package_tampered`; 503 where it cannot be opened
    now."""
    contents = _contents(raw)
    manifest_bytes = contents.pop(MANIFEST, b"")
    signature = contents.pop(SIGNATURE, b"")
    manifest = _manifest(manifest_bytes)
    _require_signed(manifest, manifest_bytes, signature)
    files = {path.removeprefix(FOLDER): content for path, content in contents.items() if path.startswith(FOLDER)}
    _require_whole(manifest, files, others=len(contents) - len(files))
    return Package(manifest, files, raw)


def _zip(contents: Mapping[str, bytes]) -> bytes:
    """Store the files in order and without a clock. Compressed bytes would differ from one zlib to the next."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(contents):
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, contents[path])
    return out.getvalue()


def _contents(raw: bytes) -> dict[str, bytes]:
    if len(raw) > MAX_BYTES:
        raise _unreadable("is too large")
    if not raw.startswith(b"PK"):
        raise _unreadable("cannot be read")
    try:
        entries = read_entries(raw, _LIMITS)
    except BadArchive as bad:
        raise _unreadable(_WHY.get(bad.problem, "cannot be read")) from None
    for entry in entries:
        if not entry.stored:
            raise _unreadable("is compressed")
        if len(entry.name) > MAX_NAME or not is_safe_relative(entry.name):
            raise _unreadable("contains something that isn't a plain file")
    return {entry.name: entry.content for entry in entries}


def _manifest(raw: bytes) -> PackageManifest:
    try:
        manifest = PackageManifest.model_validate_json(raw)
    except ValidationError as error:
        raise _unreadable("has no valid manifest") from error
    if _canonical_manifest(manifest) != raw:
        raise _unreadable("has a manifest in another form")
    return manifest


def _require_signed(manifest: PackageManifest, manifest_bytes: bytes, signature: bytes) -> None:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest.public_key))
        key.verify(base64.b64decode(signature, validate=True), _signed_bytes(manifest_bytes))
    except (InvalidSignature, ValueError, binascii.Error):
        raise SilasError(ErrorCode.PACKAGE_SIGNATURE) from None


def _require_whole(manifest: PackageManifest, files: Mapping[str, bytes], *, others: int) -> None:
    missing, extra = set(manifest.files) - set(files), set(files) - set(manifest.files)
    if missing:
        raise SilasError(
            ErrorCode.PACKAGE_INCOMPLETE,
            gettext("The package is missing {missing}.").format(missing=sorted(missing)[0]),
        )
    if extra or others:
        raise SilasError(ErrorCode.PACKAGE_EXTRA_FILE)
    changed = [path for path, content in files.items() if sha256_hex(content) != manifest.files[path]]
    if changed or rules.content_digest(files) != manifest.digest:
        raise SilasError(ErrorCode.PACKAGE_TAMPERED)


def _canonical_manifest(manifest: PackageManifest) -> bytes:
    return canonical_bytes(manifest.model_dump(mode="json"))


def _signed_bytes(manifest_bytes: bytes) -> bytes:
    """Put the name of the format before the manifest, so that this signature is never valid for something else."""
    return FORMAT.encode() + b"\n" + manifest_bytes


def _unreadable(why: str) -> SilasError:
    return SilasError(
        ErrorCode.PACKAGE_UNREADABLE, gettext("This isn't a valid skill package: it {why}.").format(why=why)
    )

"""Seal the installation's keys for a backup under a passphrase: scrypt, then AES-256-GCM.

Keys are left out of a backup unless they are asked for: who has both can sign as the installation.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from silas_platform.backup.manifest import BackupRefused
from silas_platform.settings import env
from silas_platform.up.environment import KEYS

MIN_CHARACTERS = 12
_PURPOSE = b"silas-backup-keys-1"
_COST = {"n": 2**17, "r": 8, "p": 1}


def read_passphrase(path: Path) -> str:
    """The passphrase in a file. Raises `BackupRefused` for a file that cannot be read and for a short one."""
    try:
        passphrase = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise BackupRefused("E_BACKUP_PASSPHRASE", f"{path} cannot be read.") from None
    if len(passphrase) < MIN_CHARACTERS:
        raise BackupRefused("E_BACKUP_PASSPHRASE", f"A passphrase has at least {MIN_CHARACTERS} characters.")
    return passphrase


def seal(passphrase: str) -> bytes:
    """The keys of this process, sealed."""
    return seal_values({name: env.text(name) for name in KEYS}, passphrase)


def unseal(text: bytes, passphrase: str) -> dict[str, str]:
    """The keys by name. Raises `BackupRefused` for another passphrase and for changed bytes."""
    return {name: value for name, value in unseal_values(text, passphrase).items() if name in KEYS}


def seal_values(values: Mapping[str, str], passphrase: str) -> bytes:
    plain = json.dumps(dict(values)).encode()
    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = AESGCM(_key(passphrase, salt)).encrypt(nonce, plain, _PURPOSE)
    parts = {"salt": salt, "nonce": nonce, "sealed": sealed}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in parts.items()}).encode()


def unseal_values(text: bytes, passphrase: str) -> dict[str, str]:
    """Raises `BackupRefused` for another passphrase and for changed bytes."""
    try:
        parts = {name: base64.b64decode(value) for name, value in json.loads(text).items()}
        plain = AESGCM(_key(passphrase, parts["salt"])).decrypt(parts["nonce"], parts["sealed"], _PURPOSE)
        return {name: str(value) for name, value in json.loads(plain).items()}
    except (ValueError, KeyError, TypeError, AttributeError, InvalidTag):
        raise BackupRefused("E_BACKUP_PASSPHRASE", "The keys do not open with this passphrase.") from None


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **_COST).derive(passphrase.encode())

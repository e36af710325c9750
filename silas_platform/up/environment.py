"""The environment of each process: addresses, keys and the rule for an open HOST.

The signing key goes to web processes and the trusted worker only, the public half of its installation key to all, the
secrets key to web and workers, the owner's database address to none of them (contract interfaces, Environment). The
worker for everything else reaches the database as a role of its own and signs with a key of its own. Keys that are not
given are created under `var/keys`, mode 0600, and passed on as files.
"""

import ipaddress
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from kernel.trust import root_of
from silas_platform.up.embedded import postgres_dsns, redis_url

ROOT = Path(__file__).resolve().parents[2]
KEYS = ("SECRET_KEY", "SILAS_SIGNING_KEY", "SILAS_SECRETS_KEY")
# The previous key, while an installation changes it; never generated.
OLD_KEYS = ("SILAS_SECRETS_KEY_OLD",)
# With which Prometheus asks web processes for /metrics; never generated.
METRICS = "SILAS_METRICS_TOKEN"
# The pinned public halves of installation keys (kernel.trust). Not secret: every process gets them.
ROOT_KEYS = "SILAS_ROOT_KEYS"
# Secrets that each program receives.
_SECRETS_OF: dict[str, set[str]] = {
    "web": {"SECRET_KEY", "SILAS_SIGNING_KEY", "SILAS_SECRETS_KEY", METRICS, *OLD_KEYS},
    "trusted": {"SECRET_KEY", "SILAS_SIGNING_KEY", "SILAS_SECRETS_KEY", *OLD_KEYS},
    "worker": {"SILAS_SECRETS_KEY", *OLD_KEYS},
}
_ADDRESSES = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_WORK_URL",
    "DATABASE_REPLICA_URL",
    "REDIS_URL",
    "SILAS_BROKER_URL",
    "SILAS_CHANNELS_URL",
)


class StartRefused(Exception):
    """The start would be unsafe or cannot work; the text says why and what to do."""


def var_directory(env: Mapping[str, str]) -> Path:
    return Path(env.get("SILAS_VAR") or ROOT / "var").resolve()


def embedded_database(env: Mapping[str, str]) -> bool:
    """Return whether the embedded PostgreSQL is used."""
    return env.get("DATABASE_URL", "") in ("", postgres_dsns(var_directory(env))[1])


def embedded_redis(env: Mapping[str, str]) -> bool:
    return env.get("REDIS_URL", "") in ("", redis_url(var_directory(env)))


def with_addresses_read(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with addresses from files as values. Raises `StartRefused` for a file that cannot be read."""
    result = dict(env)
    for name in _ADDRESSES:
        if file := result.pop(f"{name}_FILE", ""):
            if result.get(name):
                raise StartRefused(f"give {name} or {name}_FILE, not both")
            try:
                result[name] = Path(file).read_text().strip()
            except OSError as error:
                raise StartRefused(f"{name}_FILE cannot be read: {error.strerror}") from None
    return result


def with_embedded_addresses(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with the embedded servers' addresses where it names no other; migrations use the owner's role."""
    result = with_addresses_read(env)
    var = var_directory(env)
    if embedded_database(result):
        result["DATABASE_OWNER_URL"], result["DATABASE_URL"], result["DATABASE_WORK_URL"], _ = postgres_dsns(var)
    if embedded_redis(result):
        result["REDIS_URL"] = redis_url(var)
    result.setdefault("DATABASE_OWNER_URL", result["DATABASE_URL"])
    return result


def with_keys(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with every key, by value or by file; generates missing ones and keeps them for the next run.

    The installation key's public half is pinned beside them, also that of a signing key that replaced another.
    """
    result = dict(env)
    for name in KEYS:
        if not is_given(env, name):
            path = _key_path(env, name)
            if not path.exists():
                write_private(path, secrets.token_urlsafe(48))
            result[f"{name}_FILE"] = str(path)
    if not is_given(env, ROOT_KEYS):
        path = _key_path(env, ROOT_KEYS)
        if not path.exists():
            write_private(certify_once(env), "")
        pin_root(path, root_of(_value(result, "SILAS_SIGNING_KEY")))
        result[f"{ROOT_KEYS}_FILE"] = str(path)
    return result


def certify_once(env: Mapping[str, str]) -> Path:
    """Path of the marker that the installation key was pinned for the first time and the database is to be certified.

    Never created again, so that a mere start does not certify rows that were written later.
    """
    path = _key_path(env, ROOT_KEYS)
    return path.with_name(f"{path.name}.first")


def pin_root(path: Path, root: str) -> None:
    """Add a public key to the file of pinned keys, unless it is there."""
    pinned = path.read_text().split() if path.exists() else []
    if root not in pinned:
        write_private(path, "".join(f"{key}\n" for key in [*pinned, root]))


def _value(env: Mapping[str, str], name: str) -> str:
    file = env.get(f"{name}_FILE", "").strip()
    try:
        return Path(file).read_text().strip() if file else env[name].strip()
    except OSError as error:
        raise StartRefused(f"{name}_FILE cannot be read: {error.strerror}") from None


def for_program(env: Mapping[str, str], program: str) -> dict[str, str]:
    """The environment of the program `web`, `trusted` or `worker`.

    The worker gets a `SECRET_KEY` of its own, so it can forge neither logins nor visitors' tokens.
    """
    withheld = {*KEYS, METRICS, *OLD_KEYS} - _SECRETS_OF[program]
    hidden = {"DATABASE_OWNER_URL", "DATABASE_WORK_URL", *withheld, *(f"{name}_FILE" for name in withheld)}
    result = {name: value for name, value in env.items() if name not in hidden}
    if program == "worker":
        result.pop("DATABASE_REPLICA_URL", None)  # its role is that of web
        return result | {"DATABASE_URL": env.get("DATABASE_WORK_URL", ""), "SECRET_KEY": secrets.token_urlsafe(48)}
    return result


def is_given(env: Mapping[str, str], name: str) -> bool:
    """Return whether the operator gave this key, by value or by file; a generated one under `var` does not count."""
    file = env.get(f"{name}_FILE", "").strip()
    return bool(env.get(name, "").strip() or (file and Path(file) != _key_path(env, name)))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def open_host_faults(env: Mapping[str, str]) -> list[str]:
    """Reasons against a start that is reachable over the network; empty for loopback."""
    host = env.get("HOST") or "127.0.0.1"
    if is_loopback(host):
        return []
    faults = [f"{name} (or {name}_FILE) is not given" for name in KEYS if not is_given(env, name)]
    if not env.get("ALLOWED_HOSTS", "").strip():
        faults.append("ALLOWED_HOSTS is not given")
    return [f"HOST={host} is not loopback and {fault}" for fault in faults]


def _key_path(env: Mapping[str, str], name: str) -> Path:
    return var_directory(env) / "keys" / name.lower()


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.rename(path)

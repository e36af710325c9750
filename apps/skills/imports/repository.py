"""Fetch a foreign git repository, in a sandbox that reaches the repository's own host and port alone.

The sandbox's proxy resolves the name, refuses private addresses but for `SILAS_EGRESS_PRIVATE`, and calls the very
address it checked: even if git is misled by a redirect, a submodule, alternates or a flaw of its own, it reaches
nothing else, no file of this machine and no credential. It gets no configuration, hooks or prompts, and writes no
working copy: one commit comes out, as a tar.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.conf import settings

from apps.skills.imports.errors import import_refused
from kernel.canonical import canonical_bytes
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.http.addresses import host_of, is_public_url
from sandbox import SandboxResult, SandboxSpec, run
from sandbox.egress import format_place

MOST_FETCHED, SECONDS = 100_000_000, 60
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*\Z")
_PORTS = {"https": 443, "http": 80}
_NO_GIT = 77
_FETCH = """
import json, subprocess, sys
asked = json.load(open("request.json"))
git = ["git", *(word for one in asked["settings"] for word in ("-c", one))]
quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
try:
    subprocess.run([*git, "clone", *asked["clone"], "--", asked["url"], "repository"], **quiet)
except FileNotFoundError:
    sys.exit(77)
git += ["-C", "repository"]
commit = subprocess.run([*git, "rev-parse", "HEAD"], stdout=subprocess.PIPE, **quiet).stdout
open("/sandbox/out/commit", "wb").write(commit.strip())
subprocess.run([*git, "archive", "--format=tar", "-o", "/sandbox/out/tree.tar", "HEAD"], **quiet)
"""
_CLONE = (
    "--depth=1",
    "--single-branch",
    "--no-tags",
    "--no-checkout",
    "--no-recurse-submodules",
    "--quiet",
    "--template=",
)
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "http.followRedirects": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "transfer.fsckObjects": "true",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}


def fetch(url: str, ref: str, *, most_bytes: int) -> tuple[str, bytes]:
    """Return the commit, and its files as a tar. Blocking. Raises `SilasError`: `import_refused`, `git_missing`,
    `sandbox_unavailable`."""
    place = _egress_place(url)
    if ref and not _REF.match(ref):
        raise import_refused("This isn't a valid name of a branch or tag.")
    outcome = run(_spec(url, ref, place, most_bytes))
    commit, raw = outcome.artifacts.get("commit", b"").decode(errors="replace"), outcome.artifacts.get("tree.tar", b"")
    if not outcome.ok or not raw or len(raw) > most_bytes:
        raise _error_of(outcome)
    return commit, raw


def _egress_place(url: str) -> str:
    """Return its host and port, public or named by the operator, as the sandbox lists places."""
    host = host_of(url, schemes=settings.SKILL_GIT_SCHEMES)
    if not host:
        raise import_refused("Enter an https address without a user name or password.")
    parts = urlsplit(url)
    place = format_place(host, parts.port or _PORTS[parts.scheme])
    if place not in settings.EGRESS_PRIVATE and not is_public_url(url, schemes=settings.SKILL_GIT_SCHEMES):
        raise import_refused("This isn't a public address.")
    return place


def _spec(url: str, ref: str, place: str, most_bytes: int) -> SandboxSpec:
    schemes = settings.SKILL_GIT_SCHEMES
    options = [f"{name}={value}" for name, value in _SETTINGS.items()]
    options += [f"protocol.{scheme}.allow=always" for scheme in schemes]
    request: dict[str, object] = {
        "url": url,
        "settings": options,
        "clone": [*_CLONE, *(["--branch", ref] if ref else [])],
    }
    return SandboxSpec(
        ["python3", "-I", "-S", "-c", _FETCH],
        work={"request.json": canonical_bytes(request)},
        env={**_ENVIRONMENT, "GIT_ALLOW_PROTOCOL": ":".join(schemes)},
        egress=(place,),
        timeout_seconds=SECONDS,
        cpu_seconds=SECONDS,
        disk_mb=(MOST_FETCHED + most_bytes) // 1_000_000,
        egress_bytes=MOST_FETCHED,
        artifact_files=2,
    )


def _error_of(outcome: SandboxResult) -> SilasError:
    if outcome.exit_code == _NO_GIT:
        return SilasError(ErrorCode.GIT_MISSING)
    if outcome.reason == "timeout":
        return import_refused("Fetching the repository took too long.")
    if outcome.reason or outcome.ok:
        return import_refused("The repository is too large.")
    return import_refused("The repository couldn't be fetched.")

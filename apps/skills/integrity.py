"""Trust a version in use only with its proof: write access to rows, even a superuser's, brings in no skill (ADR 99).

What ships with the installation is proven by `bundled.json`, the hashes of its folders in the code; everything else by
the approval that was spent for exactly this content, along pinned key, certificate and signature. In both cases the
stored files have the version's hash, and the row says what they say. A proven version is remembered. Whether it is in
use, and since when, is said by the company's sealed list of skills (ADR 100): one that was switched off or replaced
does not come back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

from django.conf import settings

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import Card
from apps.approvals.queries import is_spent_for
from apps.approvals.tokens.payloads import approvable
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.loader import load_files
from apps.skills.models import SkillFile, SkillVersion
from apps.skills.rules import content_digest
from apps.tenants import policy_seals
from kernel.canonical import sha256_hex
from kernel.errors import SilasError
from kernel.tenancy import current_tenant_id

BUNDLED = Path(__file__).with_name("bundled.json")
_MOST_PROVEN = 16_384
_proven: set[tuple[object, ...]] = set()


def is_authentic(version: SkillVersion, sealed: policy_seals.Items | None) -> bool:
    """True when this version may be loaded; `sealed`: the list of skills in use. A refusal is logged and audited, once
    a process."""
    if sealed is None:
        return False
    if sealed.get(str(version.pk)) != policy_seals.digest(sealed_value(version)):
        policy_seals.report_untrusted("skills", str(version.pk), "not_in_use")
        return False
    return _is_proven(version)


def sealed_value(version: SkillVersion) -> dict[str, str]:
    """Return all that decides which version of a skill is in use."""
    since = version.activated_at.astimezone(UTC).isoformat() if version.activated_at else ""
    return {"name": version.name, "digest": version.digest, "since": since}


def sealed_skills() -> dict[str, dict[str, str]]:
    """Return what is in use in this tenant as the rows say, with its proof, for `manage.py certify`."""
    rows = [row for row in SkillVersion.objects.filter(status=SkillStatus.ACTIVE) if _is_proven(row)]
    return {str(row.pk): sealed_value(row) for row in rows}


def _is_proven(version: SkillVersion) -> bool:
    key = (
        current_tenant_id(),
        version.pk,
        version.name,
        version.digest,
        version.source,
        version.approval_token_id,
        json.dumps(version.manifest),
        version.body,
    )
    fingerprint = sha256_hex(repr(key))
    if (fingerprint,) in _proven:
        return True
    problem = _problem(version)
    if problem:
        policy_seals.report_untrusted("skills", str(version.pk), problem)
        return False
    if len(_proven) >= _MOST_PROVEN:
        _proven.clear()
    _proven.add((fingerprint,))
    return True


def _problem(version: SkillVersion) -> str:
    rows = SkillFile.objects.filter(version_id=version.pk).values_list("path", "content")
    files = {path: bytes(content) for path, content in rows}
    if content_digest(files) != version.digest:
        return "content"
    try:
        folder = load_files(files)
    except SilasError:
        return "content"
    content = (folder.manifest.name, folder.manifest.model_dump(mode="json"), folder.body)
    if content != (version.name, version.manifest, version.body):
        return "content"
    if version.source == SkillSource.BUNDLED:
        return "" if is_bundled(version.name, version.digest) else "not_bundled"
    return "" if _is_approved(version) else "not_approved"


def _is_approved(version: SkillVersion) -> bool:
    """True when an approval was spent for exactly this content; its card says what it binds."""
    card = Card.objects.filter(pk=version.card_id).first() if version.card_id else None
    if card is None or version.approval_token is None or not _binds(card.payload, version):
        return False
    try:
        subject = approvable(ApprovalScope.SKILL_INSTALL, card.payload)
    except (SilasError, ValueError):
        return False
    return is_spent_for(version.approval_token, subject)


def _binds(payload: object, version: SkillVersion) -> bool:
    if not isinstance(payload, Mapping):
        return False
    return payload.get("skill") == version.name and payload.get("content_hash") == version.digest


def is_bundled(name: str, digest: str) -> bool:
    """True when this content ships, or shipped, with the platform."""
    return not settings.BUNDLED_SKILLS_CHECKED or digest in bundled_digests().get(name, ())


@functools.cache
def bundled_digests() -> dict[str, list[str]]:
    """Return the hashes of all contents that ship, or shipped, with the platform, by the skill's name."""
    digests: dict[str, list[str]] = json.loads(BUNDLED.read_text())
    return digests

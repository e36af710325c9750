"""Create, change, test and propose drafts, in a web process. These functions enter their own tenant scopes.

A change names the revision it was made on; each revision is a row that is never rewritten. What is proposed is exactly
one revision, and passes the same checks as a skill from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.skills import installation
from apps.skills.enums import SkillSource
from apps.skills.loader import load_files
from apps.skills.maker import draft_tests, writer
from apps.skills.models import DraftRevision, SkillDraft, SkillVersion
from apps.skills.rules import is_skill_name
from apps.tenants.models import User
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope
from llm.models import GROUNDED

LONGEST_WISH, MOST_DRAFTS, MOST_REVISIONS = 4000, 200, 100
BY_HAND, LAID_OUT = "person", GROUNDED


def create_draft(tenant_id: UUID, *, name: str, wish: str, by: User) -> SkillDraft:
    """Create a draft from a wish, written by a model or laid out from the template. Raises `SilasError` 422
    `draft_name`, `draft_wish`; 409 `too_many_drafts`."""
    wish = _words(wish)
    if not is_skill_name(name):
        raise SilasError(ErrorCode.DRAFT_NAME)
    if len(wish) < 12:
        raise SilasError(ErrorCode.DRAFT_WISH, gettext("Describe in a sentence or two what the skill should do."))
    with tenant_scope(tenant_id):
        if SkillDraft.objects.count() >= MOST_DRAFTS:
            raise SilasError(ErrorCode.TOO_MANY_DRAFTS)
        draft: SkillDraft = SkillDraft.objects.create(name=name, wish=wish, by=by.actor, revision=0)
        job = writer.prepare_job(tenant_id, draft.pk, name, wish)
    written = async_to_sync(writer.write)(job)
    with tenant_scope(tenant_id):
        return _store_revision(draft.pk, written.files, by=by, written_by=written.by, seen=0)


def revise_draft(tenant_id: UUID, draft_id: UUID, *, words: str, seen: int, by: User) -> SkillDraft:
    """Have a model change the draft as described in words. Raises `draft_changed` 409, `no_model` 409, `draft_wish`
    422."""
    words = _words(words)
    if not words:
        raise SilasError(ErrorCode.DRAFT_WISH, gettext("Describe what should change."))
    with tenant_scope(tenant_id):
        before = _current_revision(draft_id, seen)
        draft = before.draft
        job = writer.prepare_job(tenant_id, draft.pk, draft.name, draft.wish, before=before.files, words=words)
    written = async_to_sync(writer.write)(job)
    with tenant_scope(tenant_id):
        return _store_revision(draft_id, written.files, by=by, written_by=written.by, seen=seen, words=words)


def write_file(tenant_id: UUID, draft_id: UUID, *, path: str, text: str, seen: int, by: User) -> SkillDraft:
    """Store one file as a person wrote it; an empty text removes the file. Raises `draft_changed` 409, `draft_file`
    422."""
    text = text.replace("\r\n", "\n")
    with tenant_scope(tenant_id):
        before = _current_revision(draft_id, seen)
        files = {**before.files, path: text}
        if not text.strip():
            files.pop(path)
        try:
            writer.WrittenSkill.model_validate({"files": [{"path": name, "content": files[name]} for name in files]})
        except ValueError as error:
            raise SilasError(ErrorCode.DRAFT_FILE) from error
        return _store_revision(draft_id, files, by=by, written_by=BY_HAND, seen=seen)


def run_draft_tests(tenant_id: UUID, draft_id: UUID, *, seen: int, by: User) -> dict[str, object]:
    """Run the revision's tests and store the result. Raises `draft_changed` 409, `sandbox_unavailable` 503."""
    with tenant_scope(tenant_id):
        files = dict(_current_revision(draft_id, seen).files)
    tested = draft_tests.run_tests(files)
    with tenant_scope(tenant_id):
        DraftRevision.objects.filter(draft_id=draft_id, number=seen).update(tested=tested)
        data = {"revision": seen, "passed": tested["passed"], "tests": tested["count"]}
        record(AuditEvent.SKILL_DRAFT_TRIED, actor=by.actor, subject=_subject(draft_id), data=data)
    return tested


def propose_draft(draft_id: UUID, *, seen: int, by: User) -> SkillVersion:
    """Propose this revision for approval, inside a scope. Raises `draft_changed` 409 and what `installation.propose`
    raises."""
    revision = _current_revision(draft_id, seen)
    files = {path: text.encode() for path, text in revision.files.items()}
    tested = revision.tested or {}
    draft = {
        "revision": seen,
        "written_by": revision.written_by,
        "tests": tested.get("count"),
        "passed": tested.get("passed"),
    }
    version = installation.propose(files, source=SkillSource.MAKER, by=by, report={"draft": draft})
    SkillDraft.objects.filter(pk=draft_id).update(version=version)
    return version


def delete_draft(draft_id: UUID, *, by: User) -> None:
    """Delete the draft and all its revisions; what was proposed of it stays."""
    rows = SkillDraft.objects.filter(pk=draft_id)
    if not rows.exists():
        raise NotFound()
    rows.delete()
    record(AuditEvent.SKILL_DRAFT_DELETED, actor=by.actor, subject=_subject(draft_id), data={})


def _store_revision(
    draft_id: UUID, files: Mapping[str, str], *, by: User, written_by: str, seen: int, words: str = ""
) -> SkillDraft:
    rows = SkillDraft.objects.select_for_update(no_key=True)
    draft: SkillDraft | None = rows.filter(pk=draft_id).first()
    if draft is None:
        raise NotFound()
    if draft.revision != seen:
        raise _changed(draft)
    if seen >= MOST_REVISIONS:
        raise SilasError(ErrorCode.TOO_MANY_REVISIONS)
    number = seen + 1
    DraftRevision.objects.create(
        draft=draft,
        number=number,
        words=words,
        files={path: text.replace("\0", "") for path, text in files.items()},
        written_by=written_by,
        problems=problems_of(draft.name, files),
    )
    draft.revision = number
    SkillDraft.objects.filter(pk=draft.pk).update(revision=number, updated_at=Now())
    data = {"revision": number, "files": len(files), "by_model": written_by != BY_HAND}
    record(AuditEvent.SKILL_DRAFT_WRITTEN, actor=by.actor, subject=_subject(draft.pk), data=data)
    return draft


def problems_of(name: str, files: Mapping[str, str]) -> list[str]:
    """Return what an installation would refuse, at most twenty problems."""
    try:
        folder = load_files({path: text.encode() for path, text in files.items()})
    except SilasError as refusal:
        return [str(problem)[:300] for problem in refusal.extra.get("problems", [refusal.message])][:20]
    return [] if folder.manifest.name == name else [f"SKILL.md: the name is {folder.manifest.name}, not {name}"]


def _current_revision(draft_id: UUID, seen: int) -> DraftRevision:
    draft = SkillDraft.objects.filter(pk=draft_id).first()
    if draft is None:
        raise NotFound()
    if draft.revision != seen or seen == 0:
        raise _changed(draft)
    revision: DraftRevision = DraftRevision.objects.select_related("draft").get(draft=draft, number=seen)
    return revision


def _changed(draft: SkillDraft) -> SilasError:
    extra = {"revision": draft.revision}
    return SilasError(
        ErrorCode.DRAFT_CHANGED,
        extra=extra,
    )


def _words(text: str) -> str:
    return text.replace("\0", " ").replace("\r\n", "\n").strip()[:LONGEST_WISH]


def _subject(draft_id: UUID) -> str:
    return f"skill_draft:{draft_id}"

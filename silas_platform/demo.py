"""What is in the demo? Puts the tenants described under `demo/` in place, through the services of their rooms.

Safe to repeat: what is there as described stays, what differs is put right, records that an action has changed are left
alone. Called by `seed_demo` only. Needs the signing key: an owner signs the standing approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from apps.approvals.enums import ApprovalVerdict, Pace
from apps.approvals.models import CardTiming
from apps.approvals.services import decide_card
from apps.autonomy import services as autonomy
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import AutonomySettings, OpenQuestion
from apps.autonomy.services.admission import admit_waiting
from apps.guard.enums import Period
from apps.guard.services import set_budget
from apps.memory.models import Collection
from apps.memory.services import ingest
from apps.sessions.models import VisitorOffers
from apps.sessions.visitors import offers
from apps.skills import queries as skills
from apps.skills.models import Record
from apps.skills.schemas import SkillManifest
from apps.skills.services import install_version, save_record
from apps.tenants import services as tenants
from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership, Tenant, User
from apps.work.check_runs import run_goal_checks_now
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from apps.work.plans import parse
from apps.work.services.goals import adopt_goal, install_goal, request_standing_approval
from apps.work.services.items import move
from kernel.canonical import sha256_hex
from kernel.llm.grounded.words import content
from kernel.tenancy import tenant_scope
from silas_platform import demo_inbox

FOLDER = settings.BASE_DIR / "demo"
SKILLS = settings.BASE_DIR / "skills"
ACTOR = "seed_demo"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Login:
    """One demo login, in clear: development only."""

    tenant: str
    role: str
    email: str
    password: str

    def line(self) -> str:
        return f"demo-login tenant={self.tenant} role={self.role} user={self.email} password={self.password}"


def seed(*, progress: Progress, copy: str = "") -> list[Login]:
    """Both demo tenants; returns the logins of all their staff. `copy`: another pair of them, whose slugs and keys end
    in it."""
    return [login for folder in _folders() for login in _seed_tenant(folder, progress, copy)]


def _folders() -> Iterator[Path]:
    return (path.parent for path in sorted(FOLDER.glob("*/tenant.yaml"), reverse=True))


def _seed_tenant(folder: Path, progress: Progress, copy: str) -> list[Login]:
    described = yaml.safe_load((folder / "tenant.yaml").read_text(encoding="utf-8"))
    described["slug"] += copy
    described["deployment"]["public_key"] += copy
    tenant = _tenant(described)
    progress(f"{tenant.name}: staff and deployment")
    with tenant_scope(tenant):
        staff = [_member(tenant, Role(role), person) for role, person in described["staff"].items()]
        deployment = _deployment(described)
        set_budget(Period(described["budget"]["period"]), Decimal(described["budget"]["limit_usd"]), actor=ACTOR)
        _patience(described, deployment)
        _offers(described, deployment)
        agent = User.objects.get(email=_login(described["slug"], Role.AGENT).email)
        demo_inbox.words(described, agent)
    progress(f"{tenant.name}: skills and records")
    with tenant_scope(tenant):
        for goal_file in ("goal.md", "upkeep.md"):
            for skill in parse((folder / goal_file).read_text(encoding="utf-8")).skills:
                _install(skill)
        load_records(folder)
    with tenant_scope(tenant):
        goal = _goal(folder, deployment)
        _standing(described, goal)
    _upkeep(folder, deployment)
    progress(f"{tenant.name}: knowledge")
    _knowledge(folder, described, tenant, progress)
    demo_inbox.conversations(described, deployment, agent)
    progress(f"{tenant.name}: inbox")
    with tenant_scope(tenant):
        _unattended(described, deployment)
    progress(f"{tenant.name}: what runs unattended")
    return staff


def _install(skill: str) -> None:
    """The skill, and those that connect the accounts which its tools use."""
    manifest = SkillManifest.model_validate(install_version(SKILLS / skill).manifest)
    for name in {tool.connection for tool in manifest.tools if tool.connection} - {skill}:
        install_version(SKILLS / name)


def _tenant(described: Mapping[str, Any]) -> Tenant:
    slug, named = described["slug"], {"name": described["name"], "timezone": described["timezone"]}
    there: Tenant | None = Tenant.objects.filter(slug=slug).first()
    if there is not None:
        return tenants.change_tenant(there, actor=ACTOR, **named)
    login = _login(slug, Role.OWNER)
    person = {"owner_email": login.email, "owner_name": described["staff"]["owner"], "owner_password": login.password}
    return tenants.create_tenant(slug, actor=ACTOR, **named, **person).membership.tenant


def _login(slug: str, role: Role) -> Login:
    return Login(slug, role, f"{role}@{slug}.example", f"{role}-of-{slug}")


def _member(tenant: Tenant, role: Role, person: str) -> Login:
    login = _login(tenant.slug, role)
    there: Membership | None = Membership.objects.filter(user__email=login.email).first()
    if there is None:
        tenants.add_member(login.email, role=role, full_name=person, password=login.password, actor=ACTOR)
    else:
        tenants.change_role(there, role, actor=ACTOR)
    return login


def _deployment(described: Mapping[str, Any]) -> Deployment:
    fields = dict(described["deployment"])
    slug = fields.pop("slug")
    there: Deployment | None = Deployment.objects.filter(slug=slug).first()
    if there is None:
        return tenants.create_deployment(slug, actor=ACTOR, **fields)
    return tenants.change_deployment(there, actor=ACTOR, **fields)


def _patience(described: Mapping[str, Any], deployment: Deployment) -> None:
    """New rows only: an owner may have said otherwise since."""
    for pace, seconds in described["patience"].items():
        CardTiming.objects.get_or_create(deployment=deployment, pace=Pace(pace), defaults={"seconds": seconds})


def _offers(described: Mapping[str, Any], deployment: Deployment) -> None:
    """What visitors may do beside talking; once, for the same reason."""
    if not VisitorOffers.objects.filter(deployment=deployment).exists():
        offers.change(deployment, actor=ACTOR, **described["offers"])


def load_records(folder: Path) -> None:
    """New rows only: a row that is there may have been changed by an approved action since."""
    books = yaml.safe_load((folder / "records.yaml").read_text(encoding="utf-8"))
    there = set(Record.objects.values_list("book", "key"))
    for book, rows in books.items():
        for key, row in rows.items():
            if (book, key) not in there:
                data = {name: value for name, value in row.items() if name != "customer"}
                save_record(book, key, subject=row["customer"], data=data)


def _goal(folder: Path, deployment: Deployment) -> WorkItem:
    """The goal file is the one place of gates, levels and escalations; its skills are pinned by content."""
    text = (folder / "goal.md").read_text(encoding="utf-8")
    return install_goal(text, deployment=deployment, requested_by=ACTOR).goal


def _standing(described: Mapping[str, Any], goal: WorkItem) -> None:
    """The owner's yes to what the goal's template may start by itself, given once."""
    terms = described.get("standing")
    if terms is None or goal.approval_token_id is not None:
        return
    owner = User.objects.get(email=f"owner@{described['slug']}.example")
    card = request_standing_approval(goal, uses=terms["uses"], days=terms["days"], rationale=terms["rationale"])
    decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)


def _upkeep(folder: Path, deployment: Deployment) -> None:
    """The goal on a schedule, looked at once, so that what it finds can be seen; outside of any scope. Another version
    of its skill makes it another goal, and the one before is over."""
    text = (folder / "upkeep.md").read_text(encoding="utf-8")
    with tenant_scope(deployment.tenant_id):
        pinned = list(skills.pin(parse(text).skills))
        known = list(WorkItem.objects.filter(deployment=deployment, requested_by=ACTOR, due_at__isnull=False))
        for goal in known:
            if goal.spec.skills == pinned:
                return
            move(goal, WorkItemStatus.BLOCKED, reason=WorkReason.REPLANNED, due_at=None)
        goal = adopt_goal(text, deployment_id=deployment.pk, requested_by=ACTOR)
    asyncio.run(run_goal_checks_now(deployment.tenant_id, goal.pk))


def _unattended(described: Mapping[str, Any], deployment: Deployment) -> None:
    """The owner's tasks, each begun once, so that there is a receipt to read as soon as a worker is there. New ones
    only: what somebody changed or switched off since stays so."""
    owner = User.objects.get(email=f"owner@{described['slug']}.example")
    if AutonomySettings.objects.exists():
        return
    autonomy.opt_in(owner)
    autonomy.put_settings(actor=ACTOR, enabled=True)
    for question in described["unanswered"]:
        _asked(question, deployment)
    for task in described["tasks"]:
        _task(task, owner, deployment)
    admit_waiting()


def _task(described: Mapping[str, Any], owner: User, deployment: Deployment) -> None:
    fields = {name: value for name, value in described.items() if name != "trigger"}
    task = autonomy.save_task(None, user=owner, deployment_id=deployment.pk, **fields)
    spec = dict(described["trigger"])
    kind = TriggerKind(spec.pop("kind"))
    if kind is TriggerKind.WATCH:
        spec["collection"] = str(Collection.objects.get(name=spec["collection"]).pk)
    autonomy.add_trigger(task.pk, user=owner, kind=kind, spec=spec)
    autonomy.run_now(task.pk, user=owner)


def _asked(question: Mapping[str, Any], deployment: Deployment) -> None:
    """As if visitors had asked it."""
    text, times = question["text"], question["times"]
    digest = sha256_hex(" ".join(sorted(content(text))))
    OpenQuestion.objects.get_or_create(deployment=deployment, digest=digest, defaults={"text": text, "count": times})


def _knowledge(folder: Path, described: Mapping[str, Any], tenant: Tenant, progress: Progress) -> None:
    """Outside of any scope: reading and embedding take their time."""
    for collection in described["collections"]:
        report = ingest(
            tenant,
            collection=collection["name"],
            paths=[folder / "knowledge"],
            root=folder,
            min_level=collection["min_level"],
            title=collection["title"],
            actor=ACTOR,
        )
        progress(f"{tenant.name}: {len(report.files)} documents in {collection['title']}")

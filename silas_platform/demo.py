"""What is in the demo? Puts the tenants described under `demo/` in place, through the services of their rooms.

Safe to repeat: what is there as described stays, what differs is put right, records that an action has changed are left
alone. Called by `seed_demo` only. Needs the signing key: an owner signs the standing approval.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from apps.approvals.enums import ApprovalVerdict
from apps.approvals.services import decide_card
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.guard.models import Budget
from apps.memory.services import ingest
from apps.skills import queries as skills
from apps.skills.models import Record
from apps.skills.services import install_version, save_record
from apps.tenants import services as tenants
from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership, Tenant, User
from apps.work.jobs import checks_of
from apps.work.models import WorkItem
from apps.work.services.goals import adopt_goal, ask_for_standing
from kernel.tenancy import tenant_scope

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


def seed(*, progress: Progress) -> list[Login]:
    """Both demo tenants; returns the logins of all their staff."""
    return [login for folder in _folders() for login in _seed_tenant(folder, progress)]


def _folders() -> Iterator[Path]:
    return (path.parent for path in sorted(FOLDER.glob("*/tenant.yaml"), reverse=True))


def _seed_tenant(folder: Path, progress: Progress) -> list[Login]:
    described = yaml.safe_load((folder / "tenant.yaml").read_text(encoding="utf-8"))
    tenant = _tenant(described)
    progress(f"{tenant.name}: staff, deployment and gates")
    with tenant_scope(tenant):
        staff = [_member(tenant, Role(role), person) for role, person in described["staff"].items()]
        deployment = _deployment(described)
        _gates(described, deployment)
    progress(f"{tenant.name}: skills and records")
    with tenant_scope(tenant):
        for skill in described["skills"]:
            install_version(SKILLS / skill)
        load_records(folder)
    with tenant_scope(tenant):
        goal = _goal(folder, described, deployment)
        _standing(described, goal)
    progress(f"{tenant.name}: knowledge")
    _knowledge(folder, described, tenant, progress)
    return staff


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


def _gates(described: Mapping[str, Any], deployment: Deployment) -> None:
    for order, gate in enumerate(described["gates"], start=1):
        save_gate(GateSpec(**gate), deployment_id=deployment.pk, order=order * 10)
    budget = described["budget"]
    Budget.objects.get_or_create(deployment=None, period=budget["period"], defaults={"limit_usd": budget["limit_usd"]})


def load_records(folder: Path) -> None:
    """New rows only: a row that is there may have been changed by an approved action since."""
    books = yaml.safe_load((folder / "records.yaml").read_text(encoding="utf-8"))
    there = set(Record.objects.values_list("book", "key"))
    for book, rows in books.items():
        for key, row in rows.items():
            if (book, key) not in there:
                data = {name: value for name, value in row.items() if name != "customer"}
                save_record(book, key, subject=row["customer"], data=data)


def _goal(folder: Path, described: Mapping[str, Any], deployment: Deployment) -> WorkItem:
    """The goal the deployment has, or the described one; another version of a skill makes it another goal."""
    current: WorkItem | None = WorkItem.objects.filter(pk=deployment.active_goal_id).first()
    if current is not None and set(current.spec.skills) == set(skills.pinned(described["skills"])):
        return current
    text = _goal_text(folder, described)
    goal = adopt_goal(text, deployment_id=deployment.pk, requested_by=ACTOR)
    tenants.change_deployment(deployment, actor=ACTOR, active_goal_id=goal.pk)
    return goal


def _goal_text(folder: Path, described: Mapping[str, Any]) -> str:
    """The goal's markdown with its skills pinned by content, and the outside checks of what its template may start."""
    text = (folder / "goal.md").read_text(encoding="utf-8")
    pinned = skills.pinned(described["skills"])
    wanted = described.get("standing", {}).get("tool")
    checks = checks_of([tool for tool in skills.tools_for(pinned) if tool.name == wanted])
    proofs = [check.model_dump(mode="json", exclude_none=True) for check in checks]
    filled = text.replace("skills: $skills", f"skills: {json.dumps(pinned)}")
    return filled.replace("verify: $verify", f"verify: {json.dumps(proofs)}")


def _standing(described: Mapping[str, Any], goal: WorkItem) -> None:
    """The owner's yes to what the goal's template may start by itself, given once."""
    terms = described.get("standing")
    if terms is None or goal.approval_token_id is not None:
        return
    owner = User.objects.get(email=f"owner@{described['slug']}.example")
    card = ask_for_standing(goal, uses=terms["uses"], days=terms["days"], rationale=terms["rationale"])
    decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)


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

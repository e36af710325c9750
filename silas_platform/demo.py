"""Seed the demo tenants described under `demo/`, through the services of the apps.

Safe to repeat: differences are corrected, but records that an action has changed are left alone. Called by `seed_demo`
only. Needs the signing key, because an owner signs the standing approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from django.conf import settings

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, Pace
from apps.approvals.models import CardTiming
from apps.autonomy import services as autonomy
from apps.autonomy.enums import TriggerKind
from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.models import AutonomySettings, OpenQuestion
from apps.autonomy.services.admission import admit_waiting
from apps.autonomy.services.gallery_use import use_template
from apps.contacts.enums import ContactSource
from apps.contacts.models import Contact
from apps.contacts.services import add_note, save_contact
from apps.guard.enums import Period
from apps.guard.services import set_budget
from apps.inbox import handoff
from apps.inbox import services as inbox
from apps.inbox.enums import Do, ViewPage
from apps.inbox.inbox_rules import RuleFields, save_rule
from apps.inbox.labels_and_replies import save_label, save_reply
from apps.inbox.models import CannedReply, InboxRule, Label, SavedView
from apps.inbox.saved_views import save_view
from apps.knowledge.models import Collection
from apps.knowledge.services import ingest
from apps.sessions import turn
from apps.sessions.models import ChatSession
from apps.sessions.services import accept_message, start_session
from apps.simulations.services import load_suites
from apps.skills import queries as skills
from apps.skills.models import Record
from apps.skills.schemas import SkillManifest
from apps.skills.services import install_version, save_record
from apps.tenants import services as tenants
from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership, Tenant, User
from apps.visitors import offers
from apps.visitors.models import VisitorOffers
from apps.work.check_runs import run_goal_checks_now
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from apps.work.plans import parse
from apps.work.services.goals import adopt_goal, install_goal, request_standing_approval
from apps.work.services.items import move
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.tenancy import in_scope, tenant_scope
from llm.offline.words import content
from silas_platform.demo_month import seed_month

FOLDER = settings.BASE_DIR / "demo"
SKILLS = settings.BASE_DIR / "skills"
ACTOR = "seed_demo"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Login:
    """One demo login in plain text, for development only."""

    tenant: str
    role: str
    email: str
    password: str

    def line(self) -> str:
        return f"demo-login tenant={self.tenant} role={self.role} user={self.email} password={self.password}"


def seed(*, progress: Progress, copy: str = "", month: bool = False) -> list[Login]:
    """Seed both demo tenants and return the logins of their staff.

    `copy` seeds another pair, with this suffix on slugs and keys; `month` adds thirty days of history.
    """
    folders = [path.parent for path in sorted(FOLDER.glob("*/tenant.yaml"), reverse=True)]
    return [login for folder in folders for login in _seed_tenant(folder, progress, copy, month=month)]


def _seed_tenant(folder: Path, progress: Progress, copy: str, *, month: bool) -> list[Login]:
    described = yaml.safe_load((folder / "tenant.yaml").read_text(encoding="utf-8"))
    described["slug"] += copy
    described["deployment"]["public_key"] += copy
    tenant = _tenant(described)
    progress(f"{tenant.name}: staff and deployment")
    with tenant_scope(tenant):
        staff = [_member(tenant, Role(role), person) for role, person in described["staff"].items()]
        deployment = _deployment(described)
        set_budget(Period(described["budget"]["period"]), Decimal(described["budget"]["limit_usd"]), actor=ACTOR)
        _card_timings(described, deployment)
        _offers(described, deployment)
        agent = User.objects.get(email=_login(described["slug"], Role.AGENT).email)
        _labels_and_replies(described, agent)
        _views_and_rules(described, User.objects.get(email=_login(described["slug"], Role.OWNER).email))
        _contacts(described, agent)
    progress(f"{tenant.name}: skills and records")
    with tenant_scope(tenant):
        for goal_file in ("goal.md", "upkeep.md"):
            for skill in parse((folder / goal_file).read_text(encoding="utf-8")).skills:
                _install(skill)
        load_records(folder)
    with tenant_scope(tenant):
        # The file defines gates, levels and escalations, and pins the goal's skills by content.
        text = (folder / "goal.md").read_text(encoding="utf-8")
        goal = install_goal(text, deployment=deployment, requested_by=ACTOR).goal
        _standing_approval(described, goal)
    _scheduled_goal(folder, deployment)
    progress(f"{tenant.name}: knowledge")
    _knowledge(folder, described, tenant, progress)
    _conversations(described, deployment, agent)
    progress(f"{tenant.name}: inbox")
    talks = seed_month(folder, deployment, agent) if month else 0
    if talks:
        progress(f"{tenant.name}: a month with {talks} conversations")
    with tenant_scope(tenant):
        _autonomy(described, deployment, ready=bool(talks))
    progress(f"{tenant.name}: what runs unattended")
    with tenant_scope(tenant):
        load_suites(deployment, FOLDER / "simulations", key=deployment.public_key.removesuffix(copy))
    progress(f"{tenant.name}: simulations")
    return staff


def _install(skill: str) -> None:
    """Install the skill, and the skills that connect the accounts which its tools use."""
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


def _card_timings(described: Mapping[str, Any], deployment: Deployment) -> None:
    """Add timings that are missing; existing ones may have been changed by an owner."""
    for pace, seconds in described["patience"].items():
        CardTiming.objects.get_or_create(deployment=deployment, pace=Pace(pace), defaults={"seconds": seconds})


def _offers(described: Mapping[str, Any], deployment: Deployment) -> None:
    """Set what visitors may do besides chatting, once: it may have been changed since."""
    if not VisitorOffers.objects.filter(deployment=deployment).exists():
        offers.change(deployment, actor=ACTOR, **described["offers"])


def load_records(folder: Path) -> None:
    """Add records that are missing; existing ones may have been changed by an approved action."""
    books = yaml.safe_load((folder / "records.yaml").read_text(encoding="utf-8"))
    there = set(Record.objects.values_list("book", "key"))
    for book, rows in books.items():
        for key, row in rows.items():
            if (book, key) not in there:
                data = {name: value for name, value in row.items() if name != "customer"}
                save_record(book, key, subject=row["customer"], data=data)


def _standing_approval(described: Mapping[str, Any], goal: WorkItem) -> None:
    """Let the owner give the goal's standing approval, once."""
    terms = described.get("standing")
    if terms is None or goal.approval_token_id is not None:
        return
    owner = User.objects.get(email=f"owner@{described['slug']}.example")
    card = request_standing_approval(goal, uses=terms["uses"], days=terms["days"], rationale=terms["rationale"])
    decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)


def _scheduled_goal(folder: Path, deployment: Deployment) -> None:
    """Adopt the scheduled goal and check it once, so that its findings are visible; outside any scope.

    A new version of its skill makes a new goal, and the previous one is closed.
    """
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


def _autonomy(described: Mapping[str, Any], deployment: Deployment, *, ready: bool) -> None:
    """Create the owner's tasks, with the `ready` automations of the gallery or without them, and run each once, so that
    there is a receipt to read. Skipped when settings exist."""
    owner = User.objects.get(email=f"owner@{described['slug']}.example")
    if AutonomySettings.objects.exists():
        return
    autonomy.opt_in(owner)
    autonomy.put_settings(actor=ACTOR, enabled=True)
    for question in described["unanswered"]:
        _open_question(question, deployment)
    for each in described["tasks"]:
        _task(each, owner, deployment)
    playbooks = {each["playbook"] for each in described["tasks"]}
    for template in TEMPLATES if ready else ():
        if not template.needs_model and template.key not in playbooks:
            task = use_template(template.key, user=owner, deployment_id=deployment.pk)
            autonomy.run_now(task.pk, user=owner)
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


def _open_question(question: Mapping[str, Any], deployment: Deployment) -> None:
    """Record an open question as if visitors had asked it."""
    text, times = question["text"], question["times"]
    digest = sha256_hex(" ".join(sorted(content(text))))
    OpenQuestion.objects.get_or_create(deployment=deployment, digest=digest, defaults={"text": text, "count": times})


def _knowledge(folder: Path, described: Mapping[str, Any], tenant: Tenant, progress: Progress) -> None:
    """Ingest the documents; outside any scope, because reading and embedding take long."""
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


def _labels_and_replies(described: Mapping[str, Any], agent: User) -> None:
    """Create labels and canned replies once, so that later changes of staff stay; inside a scope."""
    if not Label.objects.exists():
        for name, colour in described["labels"].items():
            save_label(agent, name=name, colour=colour)
    if not CannedReply.objects.exists():
        for name, text in described["replies"].items():
            save_reply(agent, name=name, text=text)


def _views_and_rules(described: Mapping[str, Any], owner: User) -> None:
    """Save the team's views and inbox rules once; inside a scope. `label` is given by its name."""
    labels = {label.name: str(label.pk) for label in Label.objects.all()}
    if not SavedView.objects.exists():
        for name, view in described["views"].items():
            page, parameters = ViewPage(view["page"]), dict(view["parameters"])
            if "label" in parameters:
                parameters["label"] = labels[parameters["label"]]
            save_view(owner, name=name, page=page, parameters=parameters, is_personal=False)
    if not InboxRule.objects.exists():
        for position, rule in enumerate(described["inbox_rules"], 1):
            steps = [
                {**step, "value": labels[step["value"]]} if step["do"] == Do.LABEL else step for step in rule["steps"]
            ]
            save_rule(owner, RuleFields(**{**rule, "steps": steps, "position": position}))


def _contacts(described: Mapping[str, Any], agent: User) -> None:
    """Add the company's contacts once, with what staff noted; inside a scope. They were last seen `seen_days` ago."""
    if Contact.objects.exists():
        return
    for person in described["contacts"]:
        contact = save_contact(
            None,
            actor=ACTOR,
            source=ContactSource(person.get("source", ContactSource.TEAM)),
            name=person["name"],
            emails=person.get("emails", ()),
            phones=person.get("phones", ()),
            customer=person.get("customer"),
            attributes=person["attributes"],
        )
        seen = now() - timedelta(days=person["seen_days"])
        Contact.objects.filter(pk=contact.pk).update(created_at=seen - timedelta(days=90), last_seen_at=seen)
        if person.get("note"):
            add_note(contact.pk, person["note"], actor=agent.actor, author=agent)


def _conversations(described: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    """Hold conversations between the real bot and an agent, unless there are any; outside any scope, because the bot
    answers as for a visitor."""
    with tenant_scope(deployment.tenant_id):
        if ChatSession.objects.exists():
            return
    for talk in described["conversations"]:
        _hold_conversation(talk, deployment, agent)


def _hold_conversation(talk: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    session_id = start_session(deployment, locale="en").session_id
    for line in talk["said"]:
        asyncio.run(_send_and_answer(deployment.tenant_id, session_id, line))
    with tenant_scope(deployment.tenant_id):
        for name in talk["labels"]:
            inbox.mark(session_id, agent, label_id=Label.objects.get(name=name).pk, on=True)
        if talk.get("note"):
            inbox.note(session_id, agent, talk["note"])
        if talk.get("reply"):
            handoff.take_over(session_id, agent)
            handoff.reply(session_id, agent, talk["reply"])
        if talk.get("resolved"):
            inbox.resolve(session_id, agent)


async def _send_and_answer(tenant_id: UUID, session_id: UUID, text: str) -> None:
    await in_scope(tenant_id, accept_message, session_id, text=text)
    state = await in_scope(tenant_id, turn.open_turn, session_id, consumer=ACTOR)
    if state is not None:
        await turn.run(state)

"""Keep the isolated copy of a deployment's policy: a company of its own, brought up to date before each run (ADR 120).

Row-level security separates the copy like any other company. Its only member is a scripted reviewer, it has no
accounts, tool servers, webhooks, budgets, automations or memories, and its scripts and checks get no network, so
nothing in it reaches a person, another service, or the company's own work. What
is policy is activated there through the services that activate it everywhere, and sealed for the copy alone; documents
and records are copied as rows. A copy needs the signing key, so a web process or a command makes it.

Every function opens scopes of its own: the company and its copy are never in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.db.models import Q, QuerySet

from apps.access.models import AccessLevel
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import CardTiming
from apps.gates.models import Gate
from apps.gates.schemas import GateSpec
from apps.gates.services import versions as gates
from apps.knowledge.models import Chunk, Collection, Document, DocumentVersion
from apps.memory.models import MemoryItem
from apps.persona import services as personas
from apps.persona.enums import Preset
from apps.persona.queries import state_of
from apps.simulations.models import SimulationCopy
from apps.simulations.schemas import Overrides, Personality
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.loader import load_files
from apps.skills.models import Record, SkillFile, SkillVersion
from apps.skills.queries import reaches_hosts
from apps.skills.services import change_status, install_folder
from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership, Tenant, User
from apps.tenants.services import add_member, change_deployment, create_deployment
from apps.visitors.models import VisitorOffers
from apps.work.models import ReviewPolicy, WorkItem
from apps.work.schemas import WorkItemSpec
from apps.work.services.goals import copy_goal, request_standing_approval
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import TenantModel, tenant_scope
from llm.keys import seal_key

ACTOR = "system"
_COPIED_FIELDS = (
    "title",
    "greeting",
    "suggestions",
    "languages",
    "persona",
    "model_names",
    "environment_keys",
    "opening_hours",
    "timezone",
    "after_hours",
)
# Rows that belong to a deployment and decide nothing beyond it.
_OF_DEPLOYMENT: tuple[type[TenantModel], ...] = (CardTiming, ReviewPolicy, VisitorOffers)
_BATCH = 500
_REHEARSAL = "The company's goal has a standing approval; its isolated copy gets one of its own."


@dataclass
class Policy:
    """What a copy is made of, read in one scope of the company."""

    deployment: Deployment
    tenant: Tenant
    fields: dict[str, Any]
    keys: dict[str, str]
    gates: list[tuple[GateSpec, bool, int]]
    levels: list[AccessLevel]
    skills: list[dict[str, bytes]]
    goal: WorkItemSpec | None
    standing: tuple[int, int] | None
    personality: Personality | None
    rows: list[TenantModel]
    records: list[Record]
    lacks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Refreshed:
    """The copy's deployment, and what the copy could not take over, a line each."""

    deployment: Deployment
    lacks: list[str]


def refresh(deployment: Deployment, overrides: Overrides) -> Refreshed:
    """Make the copy, or bring it in line with the deployment and with what a draft has otherwise.

    Raises `SilasError`: what the services raise that activate policy, and `simulation_goal_unknown` for a draft's goal
    that is none of this company's.
    """
    with tenant_scope(deployment.tenant_id):
        policy = _read(deployment, overrides)
    target = _target(policy)
    with tenant_scope(target.tenant_id):
        _write_policy(policy, target)
    _copy_documents(deployment.tenant_id, target.tenant_id)
    with tenant_scope(deployment.tenant_id):
        SimulationCopy.objects.filter(deployment=deployment).update(refreshed_at=now())
    return Refreshed(target, policy.lacks)


def _read(deployment: Deployment, overrides: Overrides) -> Policy:
    deployment = Deployment.objects.select_related("tenant").get(pk=deployment.pk)
    goal_id = overrides.goal_id or deployment.active_goal_id
    goal = WorkItem.objects.filter(pk=goal_id, type="goal").first() if goal_id else None
    if overrides.goal_id and goal is None:
        raise SilasError(ErrorCode.SIMULATION_GOAL_UNKNOWN)
    state = state_of(deployment.pk)
    personality = overrides.personality
    if personality is None and state is not None:
        personality = Personality(preset=state.active_preset, axes=state.baseline_axes)
    policy = Policy(
        deployment=deployment,
        tenant=deployment.tenant,
        fields={name: getattr(deployment, name) for name in _COPIED_FIELDS} | overrides.fields(),
        keys={provider: deployment.keys.of(f"{provider}:any") or "" for provider in deployment.sealed_keys},
        gates=_gates(deployment),
        levels=list(AccessLevel.objects.filter(deployment=deployment).order_by("order")),
        skills=[],
        goal=goal.spec if goal else None,
        standing=_standing(goal),
        personality=personality,
        rows=[row for model in _OF_DEPLOYMENT for row in _rows_of(model, deployment)],
        records=list(Record.objects.all()),
    )
    for version in SkillVersion.objects.filter(status=SkillStatus.ACTIVE).order_by("activated_at"):
        if version.source == SkillSource.BUNDLED:
            files = SkillFile.objects.filter(version=version).values_list("path", "content")
            policy.skills.append({path: bytes(content) for path, content in files})
            if reaches_hosts(version):
                policy.lacks.append(f"network of {version.name}")
        else:
            policy.lacks.append(f"skill {version.name}")
    return policy


def _standing(goal: WorkItem | None) -> tuple[int, int] | None:
    """(uses, days) of the goal's standing approval while it is valid; the copy gets one of its own."""
    token = goal.approval_token if goal else None
    if token is None or token.expires_at <= now():
        return None
    return token.max_executions, max((token.expires_at - now()).days, 1)


def reviewer_of(target: Deployment) -> User:
    """The scripted reviewer of a copy, its only member; inside the copy's scope. It has an approver's key of its own,
    no password, and an address that no mail server has."""
    member = Membership.objects.select_related("user").first()
    if member is not None:
        return member.user
    address = f"reviewer@{target.slug}.invalid"
    return add_member(address, role=Role.OWNER, full_name="Scripted reviewer", actor=ACTOR).membership.user


def _gates(deployment: Deployment) -> list[tuple[GateSpec, bool, int]]:
    """(gate, whether it is the company's own, order) of every gate in force."""
    rows = Gate.objects.filter(active__isnull=False).prefetch_related("versions")
    found = []
    for gate in rows:
        if gate.deployment_id not in (None, deployment.pk):
            continue
        (version,) = (version for version in gate.versions.all() if version.number == gate.active)
        found.append((GateSpec(name=gate.name, **version.content), gate.deployment_id is None, version.order))
    return found


def _target(policy: Policy) -> Deployment:
    """The copy's deployment; the copy is made where there is none."""
    with tenant_scope(policy.tenant):
        known = SimulationCopy.objects.filter(deployment=policy.deployment).first()
    if known is None:
        known = _make(policy)
    with tenant_scope(known.copy_tenant_id):
        target: Deployment = Deployment.objects.get(pk=known.copy_deployment_id)
    return target


def _make(policy: Policy) -> SimulationCopy:
    slug = f"simulation-{uuid4().hex[:16]}"
    timezone = policy.tenant.timezone
    company = Tenant.objects.create(slug=slug, name=policy.tenant.name, timezone=timezone, is_simulated=True)
    with tenant_scope(company):
        target = create_deployment(slug, actor=ACTOR, public_key=slug, **policy.fields)
    with tenant_scope(policy.tenant):
        fresh = SimulationCopy(deployment=policy.deployment, copy_tenant_id=company.pk, copy_deployment_id=target.pk)
        SimulationCopy.objects.bulk_create([fresh], ignore_conflicts=True)
        # Of two that made one at once the first counts; the other stays empty and unused.
        known: SimulationCopy = SimulationCopy.objects.get(deployment=policy.deployment)
    return known


def _write_policy(policy: Policy, target: Deployment) -> None:
    change_deployment(target, actor=ACTOR, active_goal_id=None, **policy.fields)
    sealed = {
        provider: seal_key(key, provider=provider, owner=str(target.pk)) for provider, key in policy.keys.items() if key
    }
    Deployment.objects.filter(pk=target.pk).update(sealed_keys=sealed)
    _write_skills(policy)
    _write_gates(policy, target)
    AccessLevel.objects.filter(deployment=target).delete()
    for level in policy.levels:
        _as_copy(level, target).save(force_insert=True)
    for model in _OF_DEPLOYMENT:
        _rows_of(model, target).delete()
    for row in policy.rows:
        _as_copy(row, target).save(force_insert=True)
    MemoryItem.objects.all().delete()
    Record.objects.all().delete()
    Record.objects.bulk_create(
        [Record(**_values(record, but={"id", "tenant_id"})) for record in policy.records], batch_size=_BATCH
    )
    _write_personality(policy.personality, target)
    if policy.goal is not None:
        goal = copy_goal(policy.goal, deployment=target, requested_by=ACTOR)
        if policy.standing is not None:
            uses, days = policy.standing
            card = request_standing_approval(goal, uses=uses, days=days, rationale=_REHEARSAL)
            decide_card(card.pk, user=reviewer_of(target), verdict=ApprovalVerdict.APPROVED)


def _write_skills(policy: Policy) -> None:
    folders = [load_files(files) for files in policy.skills]
    for version in SkillVersion.objects.filter(status=SkillStatus.ACTIVE):
        if (version.name, version.digest) not in {(folder.manifest.name, folder.digest) for folder in folders}:
            change_status(version, SkillStatus.DISABLED)
    for folder in folders:
        version = install_folder(folder)
        if version.status == SkillStatus.DISABLED:
            change_status(version, SkillStatus.ACTIVE, activated_at=now())


def _write_gates(policy: Policy, target: Deployment) -> None:
    wanted = {(spec.name, is_companys) for spec, is_companys, _ in policy.gates}
    for gate in Gate.objects.filter(active__isnull=False):
        if (gate.name, gate.deployment_id is None) not in wanted:
            gates.retire(gate.pk, actor=ACTOR)
    for spec, is_companys, order in policy.gates:
        gates.save_gate(spec, deployment_id=None if is_companys else target.pk, order=order, actor=ACTOR)


def _write_personality(wanted: Personality | None, target: Deployment) -> None:
    preset = Preset(wanted.preset) if wanted else Preset.OFF
    if wanted and preset == Preset.CUSTOM:
        personas.set_axes(target, wanted.axes, actor=ACTOR)
    else:
        personas.choose_preset(target, preset, actor=ACTOR)


def _as_copy(row: TenantModel, target: Deployment) -> TenantModel:
    values = _values(row, but={"id", "tenant_id", "deployment_id"}) | {"deployment_id": target.pk}
    return type(row)(**values)


def _rows_of(model: type[TenantModel], deployment: Deployment) -> QuerySet[TenantModel]:
    """The deployment's rows of a model in `_OF_DEPLOYMENT`, which all name one."""
    rows: QuerySet[TenantModel] = model.objects.filter(Q(deployment=deployment))
    return rows


def _values(row: TenantModel, *, but: Iterable[str] = ()) -> dict[str, Any]:
    fields = (each for each in row._meta.concrete_fields if not each.generated and each.attname not in but)
    return {each.attname: getattr(row, each.attname) for each in fields}


# Documents from the outside in; ids in the copy follow from those of the company, so that only differences are written.
_LIBRARY: tuple[tuple[type[TenantModel], Mapping[str, str]], ...] = (
    (Collection, {}),
    (Document, {"collection_id": "collection"}),
    (DocumentVersion, {"document_id": "document"}),
    (Chunk, {"collection_id": "collection", "version_id": "version"}),
)


def _copy_documents(source: UUID, copy: UUID) -> None:
    """Only the newest version of each document: it is the one that is searched."""
    for model, _ in reversed(_LIBRARY):
        with tenant_scope(source):
            wanted = {uuid5(copy, str(pk)) for pk in _newest(model)}
        with tenant_scope(copy):
            model.objects.exclude(pk__in=wanted).delete()
    for model, links in _LIBRARY:
        with tenant_scope(source):
            ids = list(_newest(model))
        with tenant_scope(copy):
            there = set(model.objects.values_list("pk", flat=True))
        # Names and levels of collections and documents may change; a version and its chunks do not.
        fresh = ids if model in (Collection, Document) else [pk for pk in ids if uuid5(copy, str(pk)) not in there]
        for start in range(0, len(fresh), _BATCH):
            with tenant_scope(source):
                rows = [
                    _values(row, but={"tenant_id"})
                    for row in model.objects.filter(pk__in=fresh[start : start + _BATCH])
                ]
            _write_rows(model, rows, links, there, copy)


def _newest(model: type[TenantModel]) -> Iterable[UUID]:
    rows = model.objects.all()
    if model is DocumentVersion:
        rows = rows.order_by("document_id", "-number").distinct("document_id")
    elif model is Chunk:
        rows = rows.order_by("pk")
    return rows.values_list("pk", flat=True)


def _write_rows(
    model: type[TenantModel], rows: list[dict[str, Any]], links: Mapping[str, str], there: set[UUID], copy: UUID
) -> None:
    for values in rows:
        for name in ("id", *links):
            values[name] = uuid5(copy, str(values[name]))
    with tenant_scope(copy):
        model.objects.bulk_create([model(**values) for values in rows if values["id"] not in there], batch_size=_BATCH)
        for values in rows:
            if values["id"] in there:
                model.objects.filter(pk=values["id"]).update(**{k: v for k, v in values.items() if k != "id"})

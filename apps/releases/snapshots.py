"""Take the snapshot of a deployment as it is now. Inside a scope."""

from __future__ import annotations

from django.db.models import Q

from apps.gates.models import Gate
from apps.knowledge.queries import content_digest
from apps.persona.enums import Preset
from apps.persona.queries import state_of
from apps.persona.rules import axes_of
from apps.releases.schemas import GateRef, Recorded, Served, Snapshot
from apps.skills.queries import active_versions
from apps.tenants.models import Deployment


def take(deployment: Deployment) -> Snapshot:
    """The working copy, with the company's active gates, skills and documents."""
    return Snapshot(served=_served(deployment), recorded=_recorded(deployment))


def with_served(deployment: Deployment, served: Served) -> Snapshot:
    """The former settings `served`, with what the company has now."""
    return Snapshot(served=served, recorded=_recorded(deployment))


def _served(deployment: Deployment) -> Served:
    state = state_of(deployment.pk)
    axes = axes_of(state.baseline_axes if state else {})
    return Served(
        persona=deployment.persona,
        models=deployment.model_names,
        preset=state.active_preset if state else Preset.OFF.value,
        axes={str(axis): value for axis, value in axes.items()},
        greeting=deployment.greeting,
        suggestions=tuple(deployment.suggestions),
        languages=tuple(deployment.languages),
    )


def _recorded(deployment: Deployment) -> Recorded:
    gates = Gate.objects.filter(Q(deployment=None) | Q(deployment=deployment), active__isnull=False)
    # Of each skill the current version comes first.
    skills: dict[str, str] = {}
    for name, digest in active_versions().values_list("name", "digest"):
        skills.setdefault(name, digest)
    documents, knowledge = content_digest()
    return Recorded(
        goal=str(deployment.active_goal_id or ""),
        gates=tuple(
            GateRef(name=gate.name, everywhere=gate.deployment_id is None, version=gate.active)
            for gate in gates.order_by("name", "deployment_id")
        ),
        skills=skills,
        documents=documents,
        knowledge=knowledge,
    )

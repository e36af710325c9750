"""Read the personality of deployments. Inside a scope."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.persona import rules
from apps.persona.enums import Preset
from apps.persona.models import PersonaEvent, PersonaState
from kernel.tenancy import Read, built_once

MOST_EVENTS = 100


def baseline_of(deployment_id: UUID) -> Read[rules.Axes | None]:
    """The seven axes of the deployment; None without a personality."""
    baseline = _baseline.columns(deployment_id)
    return baseline.parsed(lambda found: rules.axes_of(json.loads(found[0][0])) if found else None)


@built_once
def _baseline(deployment_id: UUID) -> QuerySet[PersonaState, Any]:
    rows = PersonaState.objects.filter(deployment_id=deployment_id).exclude(active_preset=Preset.OFF)
    return rows.order_by().values_list("baseline_axes")


def state_of(deployment_id: UUID) -> PersonaState | None:
    return PersonaState.objects.filter(deployment_id=deployment_id).first()


def newest_events(deployment_id: UUID) -> list[PersonaEvent]:
    return list(PersonaEvent.objects.filter(deployment_id=deployment_id).order_by("-created_at", "-id")[:MOST_EVENTS])

"""Read the personality of deployments. Inside a scope."""

from __future__ import annotations

import json
from uuid import UUID

from apps.persona import rules
from apps.persona.enums import Preset
from apps.persona.models import PersonaEvent, PersonaState
from kernel.tenancy import Read

MOST_EVENTS = 100


def baseline_of(deployment_id: UUID) -> Read[rules.Axes | None]:
    """The seven axes of the deployment; None without a personality."""
    rows = PersonaState.objects.filter(deployment_id=deployment_id).exclude(active_preset=Preset.OFF)
    sql, values = rows.order_by().values_list("baseline_axes").query.sql_with_params()
    return Read(sql, values, lambda found: rules.axes_of(json.loads(found[0][0])) if found else None)


def state_of(deployment_id: UUID) -> PersonaState | None:
    return PersonaState.objects.filter(deployment_id=deployment_id).first()


def newest_events(deployment_id: UUID) -> list[PersonaEvent]:
    return list(PersonaEvent.objects.filter(deployment_id=deployment_id).order_by("-created_at", "-id")[:MOST_EVENTS])

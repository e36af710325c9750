"""What a conversation is served by: the settings of its release, or of the deployment while it has none.

Every turn, greeting and run of a deployment's models takes its settings from here. `Deployment` holds the working copy
that owners edit; once there is a release, visitors see an edit when it is published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.persona.enums import Preset
from apps.persona.rules import axes_of
from apps.releases import rules
from apps.releases.enums import ReleaseStatus
from apps.releases.models import Release
from apps.releases.schemas import Served, ServedRelease, ServedSettings
from apps.tenants.models import Deployment
from kernel.tenancy import Read, built_once
from kernel.tenancy.reads import Rows


def release_for(
    deployment_id: UUID, *, session_id: UUID | None = None, bound: UUID | None = None, draft: bool = False
) -> Read[ServedRelease | None]:
    """The release of a conversation: the one it is `bound` to, unless that was rolled back, else one of the live ones
    by their shares. Without a conversation, the live one with the largest share. None for a `draft`, which is served by
    the working copy, and while there is no release."""

    def parse(found: Rows) -> ServedRelease | None:
        return None if draft else _choose(found, session_id, bound)

    return _candidates.columns(deployment_id, bound).parsed(parse)


@built_once
def _candidates(deployment_id: UUID, bound: UUID | None) -> QuerySet[Release, Any]:
    rows = Release.objects.filter(Q(pk=bound) | Q(status=ReleaseStatus.LIVE), deployment_id=deployment_id)
    return rows.order_by("number").values_list("pk", "number", "status", "share", "snapshot")


def _choose(rows: Rows, session_id: UUID | None, bound: UUID | None) -> ServedRelease | None:
    kept = [row for row in rows if row[0] == bound and row[2] != ReleaseStatus.WITHDRAWN]
    live = [row for row in rows if row[2] == ReleaseStatus.LIVE]
    if not kept and not live:
        return None
    pk, number, _, _, snapshot = kept[0] if kept else live[rules.pick([row[3] for row in live], session_id)]
    return ServedRelease(pk, number, Served.model_validate(json.loads(snapshot)["served"]))


def settings_of(
    deployment: Deployment, release: ServedRelease | None, *, axes: Mapping[Any, float] | None = None
) -> ServedSettings:
    """`axes` are those of the working copy, for a turn without a release."""
    if release is None:
        return ServedSettings(
            release=None,
            number=0,
            persona=deployment.persona,
            model_names=deployment.model_names,
            axes=axes,
            greeting=deployment.greeting,
            suggestions=tuple(deployment.suggestions),
            languages=tuple(deployment.languages),
        )
    served = release.served
    return ServedSettings(
        release=release.pk,
        number=release.number,
        persona=served.persona,
        model_names=served.models,
        axes=None if served.preset == Preset.OFF else axes_of(served.axes),
        greeting=served.greeting,
        suggestions=served.suggestions,
        languages=served.languages,
    )


def live_settings(deployment: Deployment) -> ServedSettings:
    """What is served outside of a conversation: by work, automations and a widget that has none yet."""
    return settings_of(deployment, release_for(deployment.pk).value)

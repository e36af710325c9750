"""The access levels of a deployment whose goal has none of its own (spec 5.6). A row that is not certified opens
nothing."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from uuid import UUID

from pydantic import ValidationError

from apps.access.models import AccessLevel as AccessLevelRow
from apps.access.rules import PUBLIC
from apps.gates.schemas import AccessLevel
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Deployment
from kernel.tenancy import Read, current_tenant_id
from kernel.tenancy.reads import Rows

KNOWLEDGE_TOOL = "knowledge_search"
_BARE_LEVELS = {PUBLIC: AccessLevel(tools=[KNOWLEDGE_TOOL])}


_LEVELS = """
    SELECT version, signature, items FROM tenants_policyseal WHERE tenant_id = %s AND kind = 'levels'
    UNION ALL (
    SELECT 0, level.id::text, (row_to_json(level)::jsonb - 'id')::text FROM (
        SELECT id, deployment_id AS deployment, name, "order", description, tools, requires, expires_after
        FROM silas_sessions_accesslevel
        WHERE tenant_id = %s AND deployment_id = %s ORDER BY name <> 'public', "order"
    ) level)
"""


def levels_of(deployment: Deployment) -> Read[Mapping[str, AccessLevel]]:
    """The deployment's own levels, lowest first; `public` is always there. A level that is not certified is not. One
    statement, so that list and rows are of one moment."""
    tenant_id = current_tenant_id()
    return Read(_LEVELS, [tenant_id, tenant_id, deployment.pk], partial(_certified_levels, tenant_id))


def _certified_levels(tenant_id: UUID, rows: Rows) -> Mapping[str, AccessLevel]:
    seals = [row for row in rows if row[0]]
    if policy_seals.verified_items(tenant_id, PolicyKind.LEVELS, seals) is None:
        return _BARE_LEVELS
    levels, doubts = _levels(tuple((row_id, text) for version, row_id, text in rows if not version), seals[0][2])
    for name in doubts:
        policy_seals.report_untrusted(PolicyKind.LEVELS, name, "forged")
    return levels


@functools.lru_cache(maxsize=256)
def _levels(rows: tuple[tuple[str, str], ...], sealed: str) -> tuple[Mapping[str, AccessLevel], tuple[str, ...]]:
    """Made once for each state of rows and list. A row that is no level, or not the one that was put in force, opens
    nothing: it is left out."""
    levels, doubts = dict(_BARE_LEVELS), []
    wanted: dict[str, str] = json.loads(sealed)
    for row_id, text in rows:
        values = json.loads(text)
        if wanted.get(row_id) != policy_seals.digest(values):
            doubts.append(row_id)
            continue
        fields = {field: value for field, value in values.items() if field not in ("deployment", "name", "order")}
        with suppress(ValidationError):
            levels[values["name"]] = AccessLevel.model_validate(fields)
    return levels, tuple(doubts)


def sealed_level(row: AccessLevelRow) -> dict[str, object]:
    """All of a level that decides what it opens, as `_LEVELS` reads it."""
    return {
        "deployment": str(row.deployment_id),
        "name": row.name,
        "order": row.order,
        "description": row.description,
        "tools": row.tools,
        "requires": row.requires,
        "expires_after": row.expires_after,
    }


def sealed_levels() -> dict[str, dict[str, object]]:
    """What the rows say in this tenant, for `manage.py certify`."""
    return {str(row.pk): sealed_level(row) for row in AccessLevelRow.objects.all()}

"""Suggestions, which authorize nothing. Opened and worded by `apps.suggestions.services.suggestions` and
`apps.connections.services.recovery`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from apps.approvals.cards.kinds.base import Choice, Kind, chosen_options
from apps.approvals.cards.schemas import Key, Options
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _


class SuggestionPayload(FrozenModel):
    suggestion_id: Key
    scope_id: Key
    source: Literal["idle_heartbeat", "post_execution", "goal_monitor", "connection_check"]
    proposed_work_item_id: str | None = None
    cooldown_key: Key
    options: Options = Field(default_factory=list)


class Suggestion(Kind):
    kind = CardKind.SUGGESTION
    label = _("Suggestion")
    payload = SuggestionPayload
    scopes = frozenset({ApprovalScope.SINGLE_STEP})
    pace = Pace.CALM
    binds = False
    labels_are_complete = True

    def options(self, payload: Mapping[str, object]) -> tuple[Choice, ...]:
        return chosen_options(payload)

"""Changes of what is approved without a card of its own. Opened and worded by
`apps.suggestions.services.calibration`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from apps.approvals.cards.kinds.base import APPROVAL, REJECTION, Kind, edit
from apps.approvals.cards.schemas import Fraction, Key, Line
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _
from kernel.stored_texts import stored_text


class AutonomyChange(FrozenModel):
    key: Literal[
        "standing.scope",
        "standing.max_executions",
        "standing.expires_at",
        "batch_review.default_size",
        "batch_review.confidence.high_min",
    ]
    current_value: Annotated[str, Field(max_length=200)]
    proposed_value: Annotated[str, Field(max_length=200)]
    direction: Literal["widen", "tighten"]


class AutonomyPayload(FrozenModel):
    """The six bound keys of contract silas 8."""

    changes: Annotated[list[AutonomyChange], Field(min_length=1, max_length=10)]
    scope_id: Key
    goal_id: str | None
    sample_size: Annotated[int, Field(ge=0)]
    correction_rate: Fraction
    evidence_window: Line


class AutonomyThreshold(Kind):
    kind = CardKind.AUTONOMY_THRESHOLD
    label = _("Approval thresholds")
    payload = AutonomyPayload
    scopes = frozenset({ApprovalScope.AUTONOMY_THRESHOLD})
    choices = (APPROVAL, edit("tighten_now", stored_text("Tighten approvals instead")), REJECTION)
    pace = Pace.CALM

"""Questions with answers to choose from, which authorize nothing.

Opened and worded by `apps.work.services.candidates`, `apps.autonomy.services.proposals` and `precedents`, and
`apps.suggestions.services.preferences`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from apps.approvals.cards.kinds.base import REJECTION, Choice, Kind, chosen_options
from apps.approvals.cards.schemas import Options
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _


class DecisionPayload(FrozenModel):
    question: Annotated[str, Field(min_length=1, max_length=500)]
    options: Annotated[Options, Field(min_length=1)]
    allow_freetext: bool = False


class Decision(Kind):
    kind = CardKind.DECISION
    label = _("Question")
    payload = DecisionPayload
    scopes = frozenset({ApprovalScope.SINGLE_STEP})
    choices = (REJECTION,)
    binds = False
    labels_are_complete = True

    def options(self, payload: Mapping[str, object]) -> tuple[Choice, ...]:
        return chosen_options(payload)

"""Connections that stopped working, which authorize nothing. Opened and worded by
`apps.connections.services.recovery`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from apps.approvals.cards.kinds.base import REJECTION, Choice, Kind
from apps.approvals.cards.schemas import Key
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Pace
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _


class RecoveryOption(FrozenModel):
    """A way to recover a failed connection; its `action` is the value that the button sends."""

    action: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
    label: Annotated[str, Field(min_length=1, max_length=80)]
    description: Annotated[str, Field(max_length=300)] = ""
    risk_level: Literal["low", "medium", "high"] = "low"


class FailurePayload(FrozenModel):
    failure_type: Literal[
        "enterprise_policy_block",
        "consent_denied",
        "mfa_required",
        "rate_limited",
        "service_unavailable",
        "token_revoked",
        "unknown",
    ]
    service: Key
    message: Annotated[str, Field(min_length=1, max_length=500)]
    recovery_options: Annotated[list[RecoveryOption], Field(max_length=6)]


class ConnectionFailure(Kind):
    """A check finds it at any hour, so it must still be open when people are back in the morning."""

    kind = CardKind.CONNECTION_FAILURE
    label = _("Broken connection")
    payload = FailurePayload
    scopes = frozenset({ApprovalScope.SINGLE_STEP})
    choices = (REJECTION,)
    pace = Pace.CALM
    binds = False
    labels_are_complete = True

    def options(self, payload: Mapping[str, Any]) -> tuple[Choice, ...]:
        options = (option for option in payload["recovery_options"] if option["action"] != "skip")
        return tuple(Choice(option["action"], ApprovalVerdict.APPROVED, option["label"]) for option in options)

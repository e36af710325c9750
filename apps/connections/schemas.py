"""Shapes of the NDJSON protocol of connection skills' scripts, and of their answers (contract silas 13).

All frozen. A script's output is external: lengths are bounded, and unknown fields are dropped.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from apps.approvals.cards.schemas import Guidance, HttpsUrl
from apps.connections.enums import AuthStrategy, FailureType

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$")]
StepId = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
Permission = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^\S+$")]
Permissions = Annotated[list[Permission], Field(max_length=40)]


class ScriptOutput(BaseModel):
    """Base of what a script says; unknown fields are dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RecoveryOption(ScriptOutput):
    action: Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
    label: str = Field(min_length=1, max_length=80)
    description: str = Field(default="", max_length=300)
    risk_level: Literal["low", "medium", "high"] = "low"


class ConnectionFailure(ScriptOutput):
    failure_type: FailureType = FailureType.UNKNOWN
    service: str = Field(default="", max_length=120)
    message: str = Field(default="", max_length=500)
    retry_minutes: int | None = Field(default=None, ge=1, le=10_080)
    recovery_options: list[RecoveryOption] = Field(default_factory=list, max_length=6)


class SecureInputRequest(ScriptOutput):
    """`name`: the name under which the script finds the value among its secrets. The platform adds the reference."""

    name: Name = "value"
    label: str = Field(min_length=1, max_length=120)
    input_hint: str = Field(default="", max_length=80)
    guidance: Guidance


class DeviceCodeStep(ScriptOutput):
    type: Literal["device_code"]
    verification_url: HttpsUrl
    user_code: str = Field(min_length=1, max_length=40)
    expires_in: int = Field(ge=1, le=3600)
    poll_interval: int = Field(default=5, ge=1, le=600)


class RedirectStep(ScriptOutput):
    """`auth_url` holds the platform's own callback address and state, which the script was started with."""

    type: Literal["browser_redirect"]
    auth_url: HttpsUrl


class SecureInputStep(ScriptOutput):
    type: Literal["secure_input"]
    request: SecureInputRequest


class ProgressStep(ScriptOutput):
    type: Literal["progress"]
    message: str = Field(min_length=1, max_length=300)
    progress_pct: float | None = Field(default=None, ge=0, le=100)


Step = Annotated[DeviceCodeStep | RedirectStep | SecureInputStep | ProgressStep, Field(discriminator="type")]


class Completed(ScriptOutput):
    """Facts that are no secrets; credentials come over the descriptor of `SILAS_SECRET_OUT_FD`."""

    permissions_granted: Permissions = Field(default_factory=list)
    identity: str = Field(default="", max_length=200)
    provider: str = Field(default="", max_length=120)
    token_expires_at: AwareDatetime | None = None
    refresh_token_expires_at: AwareDatetime | None = None
    summary: str = Field(default="", max_length=500)


class SetupStepEvent(ScriptOutput):
    type: Literal["setup_step"]
    step_id: StepId
    step: Step


class AwaitInputEvent(ScriptOutput):
    type: Literal["await_input"]
    step_id: StepId


class CompletionEvent(ScriptOutput):
    type: Literal["completion"]
    connection_payload: Completed


class FailureEvent(ScriptOutput):
    type: Literal["failure"]
    failure: ConnectionFailure


class LogEvent(ScriptOutput):
    type: Literal["log"]
    level: Literal["info", "warning"] = "info"
    message: str = Field(default="", max_length=2000)


Event = SetupStepEvent | AwaitInputEvent | CompletionEvent | FailureEvent | LogEvent
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])


class Discovery(ScriptOutput):
    auth_strategy: AuthStrategy
    provider: str = Field(default="", max_length=120)
    identity_match: bool = False
    tenant_type: str = Field(default="", max_length=60)
    initial_permissions: Permissions = Field(default_factory=list)
    setup_requirements: dict[str, bool] = Field(default_factory=dict)


class HealthResult(ScriptOutput):
    healthy: bool
    token_expires_at: AwareDatetime | None = None
    refresh_token_expires_at: AwareDatetime | None = None
    latency_ms: int = Field(default=0, ge=0, le=10_000_000)
    error: str = Field(default="", max_length=500)
    warnings: list[str] = Field(default_factory=list, max_length=20)
    failure: ConnectionFailure | None = None


class RefreshResult(ScriptOutput):
    success: bool
    new_expires_at: AwareDatetime | None = None
    refresh_token_expires_at: AwareDatetime | None = None
    failure: ConnectionFailure | None = None


class RecoverResult(ScriptOutput):
    success: bool = False
    failure: ConnectionFailure | None = None


class NewConnection(BaseModel):
    """A request to connect an account. `settings` hold no secrets: an endpoint, a client id, the address of scopes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    skill: str = Field(min_length=1, max_length=100)
    name: str = Field(min_length=1, max_length=120)
    domain: str = Field(default="", max_length=120)
    settings: dict[Name, Annotated[str, Field(max_length=2000)] | int | bool] = Field(
        default_factory=dict, max_length=40
    )
    permissions: Permissions | None = None
    health_check: str = Field(default="*/30 * * * *", max_length=100)

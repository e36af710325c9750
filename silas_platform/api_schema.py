"""What drf-spectacular says of every operation of the REST API beside what its view says."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from apps.tenants.api_auth import LONGEST_IDEMPOTENCY_KEY, ApiView
from silas_platform.api_examples import EXAMPLES

_FIELDS = OpenApiParameter(
    "fields",
    OpenApiTypes.STR,
    OpenApiParameter.QUERY,
    description="Only these fields, separated by commas, in the answer or in each item of a list",
)
_ONCE = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description=f"Sent twice, it is carried out once; up to {LONGEST_IDEMPOTENCY_KEY} characters",
)
_REPEATED = (
    "`idempotency_key_reused`, `request_in_progress`, `outcome_unknown`, `answer_not_kept`: see `Idempotency-Key`"
)
# What any operation for API keys may answer, beside what its view says.
_REFUSALS = {
    "400": "`invalid`: a field is wrong, or `fields` names one that there is not",
    "401": "`not_authenticated`: no API key and no login",
    "403": "`forbidden_role`; `forbidden_scope`: `extra.scope` is missing",
    "429": "`rate_limited`: too many requests with this credential; `Retry-After` says when",
    "503": "`unavailable`: the database is away; `Retry-After` says when",
}
_REFUSALS_OF_BODIES = {
    "413": "`too_large`: the body is too large",
    "415": "`unsupported_media_type`: the body is of another type",
}


class Schema(AutoSchema):
    """Adds `fields` to what reads JSON, `Idempotency-Key` with its refusals to what acts, and to every operation what
    any of them may answer; describes no operation by the docstring of a base view."""

    def get_override_parameters(self) -> list[Any]:
        given = super().get_override_parameters()
        added = {"GET": [_FIELDS], "POST": [_ONCE]}.get(self.method, []) if isinstance(self.view, ApiView) else []
        return [*given, *added]

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        if self.method == "POST" and isinstance(self.view, ApiView):
            body = bodies.setdefault("409", {})
            body["description"] = "; ".join(filter(None, (body.get("description"), _REPEATED)))
        return bodies

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation and isinstance(self.view, ApiView):
            refusals = _REFUSALS | (_REFUSALS_OF_BODIES if "requestBody" in operation else {})
            for status, description in refusals.items():
                operation["responses"].setdefault(status, {"description": description})
        return operation

    def get_examples(self) -> list[OpenApiExample]:
        return EXAMPLES.get(self.get_operation_id(), [])

    def get_description(self) -> str | None:  # type: ignore[override]  # None as the base class for a view without one
        text: str | None = super().get_description()
        inherited = {_plain(base.__doc__) for base in type(self.view).__mro__[1:] if base.__doc__}
        return "" if type(self.view).__doc__ is None and _plain(text or "") in inherited else text


def _plain(doc: str) -> str:
    return " ".join(doc.split())

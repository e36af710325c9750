"""The settings form of a connection skill.

A skill names its settings in its front matter, under `metadata.settings`: `{name, title, help, required, kind}`, where
`kind` is `text`, `url` or `tick`. Secrets are not settings: they are asked for later, each in a field of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import QueryDict
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.connections.schemas import Name, NewConnection
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError


class Setting(BaseModel):
    """One field of the form."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Name
    title: str = Field(min_length=1, max_length=80)
    help: str = Field(default="", max_length=200)
    required: bool = False
    kind: Literal["text", "url", "tick"] = "text"


def connection_skills() -> list[SkillVersion]:
    """Return the active skills that can connect an account, by name."""
    in_use = SkillVersion.objects.filter(status=SkillStatus.ACTIVE, manifest__type="connection")
    return list(in_use.order_by("name"))


def connection_skill(name: str) -> tuple[SkillVersion, SkillManifest]:
    """Raises `NotFound`."""
    row = next((skill for skill in connection_skills() if skill.name == name), None)
    if row is None:
        raise NotFound()
    return row, SkillManifest.model_validate(row.manifest)


def settings_of(manifest: SkillManifest) -> list[Setting]:
    """Return the valid settings; invalid ones are ignored, because a skill's author may write anything there."""
    listed = manifest.metadata.get("settings")
    settings = (_setting(item) for item in (listed if isinstance(listed, list) else []))
    return [setting for setting in settings if setting is not None]


def _setting(item: object) -> Setting | None:
    try:
        return Setting.model_validate(item)
    except ValidationError:
        return None


def title_of(manifest: Mapping[str, Any]) -> str:
    """Return the name of the service."""
    display_name = (manifest.get("ui") or {}).get("display_name")
    return str(display_name or str(manifest["name"]).replace("-", " ").capitalize())


def request_from(manifest: SkillManifest, sent: QueryDict) -> NewConnection:
    """Return the submitted form. Raises `SilasError`: `connection_unfit` 422, naming the field."""
    values: dict[str, Any] = {}
    for setting in settings_of(manifest):
        text = sent.get(f"setting-{setting.name}", "").replace("\0", "")
        if setting.kind == "tick":
            values[setting.name] = bool(text)
        elif text.strip():
            values[setting.name] = text.strip() if setting.kind == "url" else text
        elif setting.required:
            raise SilasError(ErrorCode.CONNECTION_UNFIT, _("{field} is missing.").format(field=setting.title))
    name = " ".join(sent.get("name", "").replace("\0", "").split())
    try:
        return NewConnection(
            skill=manifest.name, name=name, settings=values, permissions=sent.getlist("permission") or None
        )
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][-1])
        raise SilasError(
            ErrorCode.CONNECTION_UNFIT, _("This value is not valid: {field}.").format(field=field)
        ) from error

"""What does a connection skill want to know before somebody is asked? Its settings as a form, and what was written.

A skill names its settings in its front matter, under `metadata.settings`: `{name, title, help, required, kind}`, `kind`
being `text`, `url` or `tick`. None of them is a secret: those are asked for later, each in a field of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import QueryDict
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.connections.schemas import Name, NewConnection
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
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
    """The skills in use by which an account can be connected, by name."""
    in_use = SkillVersion.objects.filter(status=SkillStatus.ACTIVE, manifest__type="connection")
    return list(in_use.order_by("name"))


def connection_skill(name: str) -> tuple[SkillVersion, SkillManifest]:
    """Raises `NotFound`."""
    found = next((each for each in connection_skills() if each.name == name), None)
    if found is None:
        raise NotFound("skill")
    return found, SkillManifest.model_validate(found.manifest)


def settings_of(manifest: SkillManifest) -> list[Setting]:
    """What cannot be read is left out: a skill's author may write anything there."""
    said = manifest.metadata.get("settings")
    return [each for one in (said if isinstance(said, list) else []) if (each := _setting(one)) is not None]


def _setting(said: Any) -> Setting | None:
    try:
        return Setting.model_validate(said)
    except ValidationError:
        return None


def title_of(manifest: Mapping[str, Any]) -> str:
    """What people call the service."""
    shown = (manifest.get("ui") or {}).get("display_name")
    return str(shown or str(manifest["name"]).replace("-", " ").capitalize())


def wanted(manifest: SkillManifest, sent: QueryDict) -> NewConnection:
    """What somebody wrote into the form. Raises `SilasError("connection_unfit")` 422 with the field it is about."""
    found: dict[str, Any] = {}
    for setting in settings_of(manifest):
        given = sent.get(f"setting-{setting.name}", "").replace("\0", "")
        if setting.kind == "tick":
            found[setting.name] = bool(given)
        elif given.strip():
            found[setting.name] = given.strip() if setting.kind == "url" else given
        elif setting.required:
            raise SilasError("connection_unfit", f"{setting.title} is missing.", status=422)
    name = " ".join(sent.get("name", "").replace("\0", "").split())
    try:
        return NewConnection(
            skill=manifest.name, name=name, settings=found, permissions=sent.getlist("permission") or None
        )
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][-1])
        raise SilasError("connection_unfit", f"This does not fit: {field}.", status=422) from error

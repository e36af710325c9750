"""Scripted conversations: what a visitor says, and the expected result of each message. Plain data, from YAML.

Expectations are about what was done, not how it was worded, so that they hold for any model: the route, the tools, the
passages cited, the level, the escalation, the work, whether a person is asked for. `says` is for facts only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parent / "chat"


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cite(Strict):
    """A passage: the title of its document and the number of its section, for example Home policy, 4.2."""

    document: str
    section: str


class Expected(Strict):
    """What is left out is not looked at; an empty list means that there must be none."""

    say: str
    route: Literal["direct", "planner", "stopped"] | None = None
    tools: list[str] | None = None
    cites: list[Cite] | None = None
    level: str | None = None
    escalation: str | None = Field(default=None, description="an action of spec 5.1.1, or none")
    work: Literal["card", "dispatched", "refused", "none"] | None = None
    person: bool | None = None
    queue: str | None = None
    speaks: str | None = Field(default=None, description="the language of the answer: en, de, fr or es")
    says: list[str] = Field(default_factory=list)
    never: list[str] = Field(default_factory=list)


class Conversation(Strict):
    name: str
    turns: list[Expected] = Field(min_length=1)


class Script(Strict):
    """All conversations with one deployment, known by its public key."""

    deployment: str
    conversations: list[Conversation]


def scripts(folder: Path = FOLDER) -> list[Script]:
    """Every file of the folder.

    Raises `OSError`, `yaml.YAMLError`, or `ValueError` for a file that is no script (pydantic's `ValidationError`) and
    for a name that stands twice: two results could not be told apart.
    """
    found = [Script.model_validate(yaml.safe_load(path.read_text())) for path in sorted(folder.glob("*.yaml"))]
    names = [conversation.name for script in found for conversation in script.conversations]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"more than one conversation is named {', '.join(twice)}")
    return found

"""Scenarios in YAML files: what a visitor says, and what must come of it; read into suites and by `python -m evals`.

A file holds the scenarios of one deployment, known by its public key; its name is the name of the suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import Field, model_validator

from apps.simulations.enums import Player, Reviewer
from apps.simulations.schemas import MOST_LINES, Check, Line, Short, Strict, scenario_problem

FOLDER = Path(__file__).parents[2] / "demo" / "simulations"


class Conversation(Strict):
    """One scenario. A model plays a visitor with a persona, a goal and secrets; without one the `turns` are said."""

    name: Short
    player: Player = Player.SCRIPT
    persona: str = ""
    goal: str = ""
    secrets: list[str] = Field(default_factory=list)
    model: Short = ""
    most_turns: int = Field(default=6, ge=1, le=MOST_LINES)
    reviewer: Reviewer = Reviewer.NONE
    checks: list[Check] = Field(default_factory=list)
    turns: list[Line] = Field(default_factory=list)

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        by_model = self.player == Player.MODEL
        if problem := scenario_problem(by_model=by_model, lines=self.turns, goal=self.goal, checks=self.checks):
            raise ValueError(problem)
        return self


class Script(Strict):
    """All scenarios of a file."""

    deployment: str
    conversations: list[Conversation]


def scripts(folder: Path = FOLDER) -> list[Script]:
    """Every file of the folder, by name.

    Raises `OSError`, `yaml.YAMLError`, or `ValueError` for a file that is no script (pydantic's `ValidationError`) and
    for a name that stands twice: two results could not be told apart.
    """
    found = [script for _, script in named_scripts(folder)]
    names = [conversation.name for script in found for conversation in script.conversations]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"more than one conversation is named {', '.join(twice)}")
    return found


def named_scripts(folder: Path) -> list[tuple[str, Script]]:
    """(name of the file, script) of every file. Raises as `scripts`."""
    paths = sorted(folder.glob("*.yaml"))
    return [(path.stem, Script.model_validate(yaml.safe_load(path.read_text()))) for path in paths]

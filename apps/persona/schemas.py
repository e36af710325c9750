"""What a turn uses of the personality."""

from __future__ import annotations

from dataclasses import dataclass

from apps.persona import directives
from apps.persona.enums import Context


@dataclass(frozen=True)
class Tone:
    """How this turn sounds: the levels of its axes as `rules.levels_of` writes them, and the initiative, 0 to 1."""

    context: Context
    levels: str
    initiative: float

    @property
    def text(self) -> str:
        """The sentences for models."""
        return directives.render(self.levels)

"""Scenarios as data: what a visitor says and wants, and what must be true then. Frozen; from YAML, JSON and forms.

Expectations are about what was done, not how it was worded, so that they hold for any model: the route, the tools, the
passages cited, the level, the escalation, the work, whether a person is asked for. `says` is for facts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from apps.bus.schemas import storable

MOST_LINES = 40
Short = Annotated[str, Field(max_length=300), AfterValidator(storable)]
Spoken = Annotated[str, Field(min_length=1, max_length=8000), AfterValidator(storable)]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cite(Strict):
    """A passage: the title of its document and the number of its section, for example Home policy, 4.2."""

    document: Short
    section: Short = ""


class Line(Strict):
    """One message of the visitor and what its answer is expected to be. What is left out is not looked at; an empty
    list means that there must be none."""

    say: Spoken
    route: Literal["direct", "planner", "stopped"] | None = None
    tools: list[Short] | None = None
    cites: list[Cite] | None = None
    level: Short | None = None
    escalation: Short | None = Field(default=None, description="an action of spec 5.1.1, or none")
    work: Literal["card", "dispatched", "refused", "none"] | None = None
    person: bool | None = None
    queue: Short | None = None
    speaks: Short | None = Field(default=None, description="the language of the answer: en, de, fr or es")
    says: list[Short] = Field(default_factory=list)
    never: list[Short] = Field(default_factory=list)


class RecordCheck(Strict):
    """A field of a record of the isolated copy has this value after the conversation."""

    kind: Literal["record"] = "record"
    book: Short
    key: Short
    field: Short
    equals: str | int | float | bool | None


class CardsCheck(Strict):
    """So many cards were opened for people."""

    kind: Literal["cards"] = "cards"
    count: int = Field(ge=0, le=100)


class CitesCheck(Strict):
    """Some answer cites this passage; any section of the document where none is named."""

    kind: Literal["cites"] = "cites"
    document: Short
    section: Short = ""


class LevelCheck(Strict):
    """The conversation ended at this level."""

    kind: Literal["level"] = "level"
    level: Short


class CostCheck(Strict):
    """The conversation cost at most this much, in US dollars."""

    kind: Literal["cost"] = "cost"
    at_most_usd: Decimal = Field(ge=0)


class SaysCheck(Strict):
    """Some answer contains each of these words; capitals do not matter."""

    kind: Literal["says"] = "says"
    words: list[Short] = Field(min_length=1)


class NeverCheck(Strict):
    """No answer contains any of these words; capitals do not matter."""

    kind: Literal["never"] = "never"
    words: list[Short] = Field(min_length=1)


class PersonCheck(Strict):
    """Whether a person was asked for."""

    kind: Literal["person"] = "person"
    wanted: bool


class ToneCheck(Strict):
    """How answers sound, as far as it can be counted: the longest one in words, exclamation marks, the language."""

    kind: Literal["tone"] = "tone"
    most_words: int | None = Field(default=None, ge=1)
    exclamations: bool = True
    language: Short = ""


class AnsweredCheck(Strict):
    """Every message got an answer."""

    kind: Literal["answered"] = "answered"


class SourcedCheck(Strict):
    """Every answer cites a document."""

    kind: Literal["sourced"] = "sourced"


Check = Annotated[
    RecordCheck
    | CardsCheck
    | CitesCheck
    | LevelCheck
    | CostCheck
    | SaysCheck
    | NeverCheck
    | PersonCheck
    | ToneCheck
    | AnsweredCheck
    | SourcedCheck,
    Field(discriminator="kind"),
]
LINES: TypeAdapter[list[Line]] = TypeAdapter(list[Line])
CHECKS: TypeAdapter[list[Check]] = TypeAdapter(list[Check])


def scenario_problem(*, by_model: bool, lines: Sequence[Line], goal: str, checks: Sequence[Check]) -> str:
    """Why nothing could be simulated, empty if it can. Where nothing is said, every check of absence would hold."""
    if by_model:
        return "" if goal.strip() and checks else "a model needs a goal, and checks to judge by"
    return "" if lines else "no lines"


class Personality(Strict):
    """The personality of a draft: a preset, or `custom` with axes."""

    preset: Short
    axes: dict[str, float] = Field(default_factory=dict)


class Overrides(Strict):
    """What a draft has otherwise than the deployment. None: as the deployment has it.

    `goal_id` is a goal of the deployment's company, in force or not.
    """

    persona: Annotated[str, Field(max_length=20_000), AfterValidator(storable)] | None = None
    greeting: Short | None = None
    suggestions: list[Short] | None = None
    languages: list[Short] | None = None
    model_names: dict[str, Short] | None = None
    personality: Personality | None = None
    goal_id: UUID | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of a deployment among them."""
        return self.model_dump(exclude_none=True, exclude={"personality", "goal_id"})


class Said(BaseModel):
    """One message of the visitor and what really came of it."""

    model_config = ConfigDict(extra="forbid")
    visitor: str
    bot: str
    route: str
    tools: list[str]
    level: str
    work: str
    answered_by: str
    cites: list[Cite] = Field(default_factory=list)


SAID: TypeAdapter[list[Said]] = TypeAdapter(list[Said])

"""Shapes of a skill: the manifest in its SKILL.md, one tool of it, and the changes that a tool's run may make.

All frozen. A tool's `skill` is its pinned reference `name@digest`, so that an approval of the tool is about these very
files (spec 10.3, 10.4).
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from apps.approvals.enums import Risk
from apps.gates.schemas import Expectation
from apps.guard.enums import Intent
from apps.skills import executors
from apps.skills.enums import Executor
from kernel.stored_texts import stored_text

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}$")]
ScriptPath = Annotated[str, StringConstraints(pattern=r"^(scripts|checks|guards)/([\w-]+/)*[\w-]+\.py$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
# `host`, `host:port`, or a slot that a connection's settings fill in: `{endpoint}`.
Host = Annotated[
    str,
    StringConstraints(pattern=r"^(\{[a-z][a-z0-9_]*\}|[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?)$", max_length=260),
]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Package = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=80)]
Permission = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=200)]
# A connection skill by its name, or any of one provider: `type:mail`.
ConnectionRef = Annotated[str, StringConstraints(pattern=r"^(type:)?[a-z0-9]+(-[a-z0-9]+)*$", max_length=70)]
DIGEST_CHARS = 16
# What a tool does with the company's documents: read, or change one as its arguments say.
KnowledgeUse = Literal["read", "add", "change", "take_out", "put_back"]
KNOWLEDGE_ARGS: dict[str, set[str]] = {
    "read": set(),
    "add": {"collection", "title", "text"},
    "change": {"collection", "document", "version", "text"},
    "take_out": {"collection", "document", "version"},
    "put_back": {"collection", "document", "version", "to"},
}


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=True)


class Consequence(Frozen):
    """What each button of a card says will happen."""

    approve: str = Field(min_length=3, max_length=80)
    decline: str = Field(default=stored_text("Nothing changes"), min_length=3, max_length=80)


class CheckSpec(Frozen):
    """A check outside the agent that proves the tool's effect. It is the same for every call: the calls themselves are
    mounted for it as `/sandbox/call/calls.json`."""

    name: str = Field(min_length=1, max_length=120)
    run: str = Field(min_length=1, max_length=500)
    expect: Expectation
    timeout: int = Field(default=60, gt=0, le=600)


class FactSpec(Frozen):
    """One line of a card. `book`, `key` and `field` name the stored value before, `shown` its template (`£{value}`);
    `after` and `text` are templates of the call's arguments (`{amount}`)."""

    label: str = Field(min_length=1, max_length=60)
    book: Identifier | None = None
    key: str | None = None
    field: str | None = None
    shown: str | None = Field(default=None, max_length=60)
    after: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.book is None) != (self.key is None) or (self.book is None and not self.text):
            raise ValueError("a fact names a stored value, or has a text")
        if self.shown is not None and (self.book is None or self.shown.count("{value}") != 1):
            raise ValueError("what a stored value is shown as holds {value} once")
        return self


class UndoSpec(Frozen):
    """The call that undoes this tool's effect. `"$name"` stands for an argument of the call, `"$answer.name"` for a
    value of the script's answer; anything else is literal."""

    tool: Identifier
    args: dict[Identifier, str | int | float | bool] = Field(default_factory=dict)


class ToolDeclaration(Frozen):
    """One tool as SKILL.md declares it under `metadata.tools`. `decides`: its arguments that decide where something
    goes, beside those whose name or format says so. It starts its script, or an `executor` runs the code of the
    call."""

    name: Identifier
    script: ScriptPath | Literal[""] = ""
    executor: Executor | None = None
    description: str = Field(min_length=8, max_length=300)
    acting: bool = False
    reversible: bool = True
    risk: Risk = Risk.LOW
    keywords: list[str] = Field(default_factory=list)
    args: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    ask: dict[str, str] = Field(default_factory=dict)
    intent: str = Field(default="", max_length=120)
    rationale: str = Field(default="", max_length=300)
    consequence: Consequence | None = None
    records: list[Identifier] = Field(default_factory=list)
    writes: list[Identifier] = Field(default_factory=list)
    undo: UndoSpec | None = None
    verify: list[CheckSpec] = Field(default_factory=list)
    facts: list[FactSpec] = Field(default_factory=list)
    timeout: int = Field(default=20, gt=0, le=120)
    connection: ConnectionRef | None = None
    permissions: list[Permission] = Field(default_factory=list)
    network: list[Host] | None = None
    knowledge: KnowledgeUse | None = None
    decides: list[Identifier] = Field(default_factory=list, max_length=20)

    @field_validator("args")
    @classmethod
    def _is_a_closed_schema(cls, args: dict[str, Any]) -> dict[str, Any]:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        try:
            Draft202012Validator.check_schema(args)
        except SchemaError as error:
            raise ValueError(f"args is no JSON schema: {error.message}") from error
        if args.get("type") != "object":
            raise ValueError("args describes an object")
        return {**args, "additionalProperties": False}

    @model_validator(mode="before")
    @classmethod
    def _executor_takes_code(cls, fields: Any) -> Any:
        """An executor's tool acts, takes the code alone, is of medium risk at least, and has no network of its own
        accord."""
        if not isinstance(fields, dict) or fields.get("executor") not in set(Executor):
            return fields
        args = dict(executors.ARGS[Executor(fields["executor"])])
        if fields.get("args", args) != args:
            raise ValueError("an executor's arguments are not declared: it takes the code")
        usual = {"acting": True, "risk": Risk.MEDIUM.value, "network": []}
        return {**usual, **{name: value for name, value in fields.items() if value is not None}, "args": args}

    @model_validator(mode="after")
    def _executor_runs_nothing_else(self) -> Self:
        if self.executor is None:
            return self
        if self.script or self.writes or self.connection or self.knowledge or self.undo:
            raise ValueError("an executor has no script, writes no records and uses no connection or documents")
        if not self.acting or self.risk == Risk.LOW:
            raise ValueError("an executor acts, with medium risk at least")
        if self.network and self.reversible:
            raise ValueError("what reaches hosts by code is not reversible")
        return self

    @model_validator(mode="after")
    def _acting_is_accountable(self) -> Self:
        if not self.script and self.executor is None:
            raise ValueError("a tool names its script")
        if self.writes and not self.acting:
            raise ValueError("only an acting tool writes")
        if self.acting and not (self.intent and self.consequence and (self.verify or self.executor)):
            raise ValueError("an acting tool declares intent, consequence and verify")
        if self.undo and not (self.acting and self.reversible):
            raise ValueError("only what acts and is reversible declares how to undo it")
        if self.permissions and not self.connection:
            raise ValueError("permissions are those of a connection")
        return self

    @model_validator(mode="after")
    def _knowledge_is_changed_alone(self) -> Self:
        if self.knowledge is None:
            return self
        if self.acting != (self.knowledge != "read"):
            raise ValueError("only an acting tool changes documents, and it says how")
        if self.writes or self.connection:
            raise ValueError("a tool that uses documents writes no records and uses no connection")
        missing = KNOWLEDGE_ARGS[self.knowledge] - (self.args.get("properties") or {}).keys()
        if missing:
            raise ValueError(f"{self.knowledge} takes the argument {min(missing)}")
        return self


class ToolSpec(ToolDeclaration):
    """A tool of an installed version. `skill` is the pinned reference; `reaches`: its script may reach other hosts."""

    skill: str
    reaches: bool = False

    @property
    def via(self) -> Intent:
        """The intent under which the guard admits it."""
        return Intent.RUN_SKILL

    @property
    def estimate(self) -> Decimal | None:
        """The cost of one call; None for nothing."""
        return None

    @property
    def is_outside(self) -> bool:
        """True when its answers come from elsewhere than the company's own records."""
        return self.reaches or self.connection is not None or self.executor is not None

    @property
    def leaves(self) -> bool:
        """True when its arguments go to a host that is neither ours nor an account of the company's."""
        return self.reaches and self.connection is None


class OutsideToolSpec(ToolSpec):
    """A tool that an outside service carries out: an accepted one of an outside server (`skill` is
    `mcp:<server>@<digest>`), or the web search.

    It brings no script and no check of ours; `proof` is what an owner named instead, `risk` the risk a person assigned
    when they accepted it, `runs` where a call is carried out, and with which key.
    """

    script: str = ""
    description: str = Field(min_length=0, max_length=2000)
    intent_of: Intent = Intent.CALL_MCP_TOOL
    price: Decimal = Decimal(0)
    level: str = ""
    server: str = ""
    proof: dict[str, Any] = Field(default_factory=dict)
    runs: str = ""

    @model_validator(mode="after")
    def _acting_is_accountable(self) -> Self:
        if self.acting and not (self.intent and self.consequence):
            raise ValueError("an acting tool declares intent and consequence")
        return self

    @property
    def via(self) -> Intent:
        return Intent(self.intent_of)

    @property
    def estimate(self) -> Decimal | None:
        return self.price

    @property
    def is_outside(self) -> bool:
        return True

    @property
    def leaves(self) -> bool:
        return True


class ArgSpec(Frozen):
    """One argument of a script (spec 10.1 `script_args`). It is required unless it has a default or is `optional`.
    `example`: its value in a dry run. `passed`: as `--name value`, or by its position in the declaration."""

    type: Literal["string", "integer", "number", "boolean"]
    description: str = Field(default="", max_length=300)
    optional: bool = False
    default: str | int | float | bool | None = None
    example: str | int | float | bool | None = None
    max_length: int | None = Field(default=None, ge=1, le=20_000)
    minimum: float | None = None
    maximum: float | None = None
    choices: list[str | int | float] | None = Field(default=None, min_length=1, max_length=50)
    passed: Literal["option", "position"] = "option"

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        is_number = self.type in ("integer", "number")
        if (self.minimum is not None or self.maximum is not None) and not is_number:
            raise ValueError("only a number has a range")
        if self.max_length is not None and self.type != "string":
            raise ValueError("only a string has a length")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError("the range is empty")
        from jsonschema import Draft202012Validator

        validator = Draft202012Validator(self.as_schema)
        if any(value is not None and not validator.is_valid(value) for value in (self.default, self.example)):
            raise ValueError("the default or the example does not fit")
        return self

    @property
    def as_schema(self) -> dict[str, Any]:
        """The argument as JSON schema."""
        schema = {
            "type": self.type,
            "description": self.description or None,
            "maxLength": (self.max_length or 2000) if self.type == "string" else None,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "enum": self.choices,
            "default": self.default,
        }
        return {name: value for name, value in schema.items() if value is not None}


class Requirements(Frozen):
    """What the scripts need. `network`: the only hosts they may reach. `env`: the variables they read beside the
    harness' own. `packages`: what they import beside the standard library."""

    network: list[Host] = Field(default_factory=list)
    packages: list[Package] = Field(default_factory=list)
    env: list[EnvName] = Field(default_factory=list)


class Presentation(Frozen):
    """How people see the skill."""

    display_name: str = Field(default="", max_length=64)
    icon: str = Field(default="", max_length=200)
    short_description: str = Field(default="", max_length=200)


class SkillManifest(Frozen):
    """The front matter of SKILL.md (spec 10.1, 10.6). `tools` is under `metadata` there; the rest of `metadata` is kept
    as it is. `type` and the three fields below it are those of a connection skill."""

    name: Slug
    description: str = Field(min_length=24, max_length=1024)
    license: str = Field(default="", max_length=300)
    requirements: Requirements = Field(default_factory=Requirements)
    ui: Presentation = Field(default_factory=Presentation)
    activation: Literal["auto", "manual", "background"] = "auto"
    composes_with: list[Slug] = Field(default_factory=list, max_length=20)
    script_args: dict[ScriptPath, dict[Identifier, ArgSpec]] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    tools: list[ToolDeclaration] = Field(default_factory=list)
    type: Literal["skill", "connection"] = "skill"
    auth_strategy: Literal["device_code", "browser_redirect", "secure_input"] | None = None
    initial_permissions: list[Permission] = Field(default_factory=list)
    available_permissions: list[Permission] = Field(default_factory=list)

    @field_validator("metadata")
    @classmethod
    def _is_plain_json(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(json.dumps(metadata, default=str, allow_nan=False))
        if "\\u0000" in json.dumps(plain):
            raise ValueError("metadata holds what cannot be stored")
        return plain

    @model_validator(mode="after")
    def _connection_is_whole(self) -> Self:
        if (self.type == "connection") != (self.auth_strategy is not None):
            raise ValueError("a connection skill, and no other, says its auth_strategy")
        if self.type == "skill" and (self.initial_permissions or self.available_permissions):
            raise ValueError("permissions are those of a connection skill")
        return self

    @model_validator(mode="after")
    def _tools_stay_within(self) -> Self:
        allowed = set(self.requirements.network)
        beyond = [host for tool in self.tools for host in tool.network or () if host not in allowed]
        if beyond:
            raise ValueError(f"{beyond[0]} is not among the skill's requirements")
        return self

    @model_validator(mode="after")
    def _each_tool_once(self) -> Self:
        names = [tool.name for tool in self.tools]
        if len(set(names)) != len(names):
            raise ValueError("two tools have one name")
        return self

    @model_validator(mode="after")
    def _each_undo_is_there(self) -> Self:
        acting = {tool.name for tool in self.tools if tool.acting}
        missing = [tool.name for tool in self.tools if tool.undo and tool.undo.tool not in acting]
        if missing:
            raise ValueError(f"{missing[0]} is undone by a tool that is not there")
        return self


class SetChange(Frozen):
    """Change some fields of a record that is at the revision the script saw."""

    book: Identifier
    key: Key
    revision: int = Field(ge=1)
    set: dict[Identifier, Any] = Field(min_length=1, max_length=20)


class CreateChange(Frozen):
    """Create a record of the customer."""

    book: Identifier
    key: Key
    subject: Key
    create: dict[Identifier, Any] = Field(min_length=1, max_length=40)


Change = SetChange | CreateChange

"""Fill in a form from the conversation: the chatbot's pre-chat form, or the arguments of one of its tools.

Each value names the message that it comes from; one that its field doesn't accept, or that names no message of the
customer, is left out. Nothing is stored or carried out: a person checks the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from apps.bus.schemas import storable
from apps.copilot.instructions import prompt_of, task_for
from apps.copilot.runs import Job, as_lines, request_output
from apps.copilot.schemas import Draft, FilledField
from apps.copilot.texts import MOST_CHARS, newest_within
from apps.sessions import policy
from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession
from apps.sessions.queries import Said
from apps.sessions.rules import preview_of
from apps.sessions.state import Policy
from apps.sessions.steps.tools import brief
from apps.visitors.enums import QuestionKind
from apps.visitors.models import FormQuestion
from apps.visitors.offers import questions_of
from kernel.canonical import canonical_json
from kernel.clock import now
from kernel.errors import NotFound
from kernel.language import gettext
from llm.briefing import ToolBrief
from llm.models import GROUNDED
from llm.offline import arguments
from llm.structured_output import StructuredRequest

PRE_CHAT = "prechat"
MOST_FIELDS = 20
_LONGEST_VALUE = 500


@dataclass(frozen=True)
class Form:
    """What can be filled in, as a schema of named fields."""

    name: str
    label: str
    shape: ToolBrief

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        return dict(list(arguments.properties(self.shape).items())[:MOST_FIELDS])


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(max_length=120)]
    value: Annotated[str, Field(max_length=_LONGEST_VALUE), AfterValidator(storable)]
    line: int


class Values(BaseModel):
    """The only shape of a model's answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fields: Annotated[list[Value], Field(max_length=2 * MOST_FIELDS)]


def forms_of(session: ChatSession) -> list[Form]:
    """What can be filled in for this conversation. Inside a scope."""
    return forms_in(session.deployment_id, policy.load(session.deployment))


def forms_in(deployment_id: UUID, frozen: Policy) -> list[Form]:
    forms = [Form(tool.name, tool.description, brief(tool)) for tool in frozen.tools]
    if questions := questions_of(deployment_id):
        shape = {"type": "object", "properties": {f"q{one.order}": _schema(one) for one in questions}}
        forms.insert(0, Form(PRE_CHAT, gettext("Pre-chat form"), ToolBrief(PRE_CHAT, "", shape)))
    return [form for form in forms if form.fields]


def form_named(name: str, forms: list[Form]) -> Form:
    """Raises `NotFound`."""
    found = next((form for form in forms if form.name == name), None)
    if found is None:
        raise NotFound()
    return found


async def fill(job: Job, form: Form) -> Draft:
    job.readable_message()
    said = tuple(one for one in newest_within(job.said, MOST_CHARS) if one.sender == Sender.VISITOR)
    lines = {one.seq: one for one in said if not one.kept_out}
    seqs = tuple(one.seq for one in said)
    if not job.has_model:
        return Draft(fields=_read(form, lines), model_name=GROUNDED, seqs=seqs)
    inquiry = StructuredRequest(
        task_for(job.request.kind),
        (("fields of the form", canonical_json(form.fields)), ("conversation", as_lines(said))),
    )
    values = await request_output(job, inquiry, Values)
    fields = _checked(form, values, lines)
    return Draft(fields=fields, model_name=job.model, prompt=prompt_of(job.request.kind), seqs=seqs)


def _read(form: Form, lines: Mapping[int, Said]) -> tuple[FilledField, ...]:
    """Values that can be recognised by their form; of several the newest."""
    found: dict[str, FilledField] = {}
    for seq, said in lines.items():
        for name, value in arguments.collect(form.shape, said.shown, today=now().date().isoformat()).items():
            if name in form.fields:
                found[name] = _field(form, name, str(value), seq, said)
    return tuple(found.get(name) or _empty(form, name) for name in form.fields)


def _checked(form: Form, values: Values, lines: Mapping[int, Said]) -> tuple[FilledField, ...]:
    found: dict[str, FilledField] = {}
    for one in values.fields:
        said, value = lines.get(one.line), " ".join(one.value.split())
        if said is None or one.name not in form.fields or not value:
            continue
        if arguments.valid(form.shape, {one.name: _typed(value, form.fields[one.name])}):
            found[one.name] = _field(form, one.name, value, one.line, said)
    return tuple(found.get(name) or _empty(form, name) for name in form.fields)


def _field(form: Form, name: str, value: str, seq: int, said: Said) -> FilledField:
    verbatim = value.casefold() in " ".join(said.shown.split()).casefold()
    return FilledField(name, arguments.label(form.shape, name), value, seq, preview_of(said.shown), verbatim)


def _empty(form: Form, name: str) -> FilledField:
    return FilledField(name, arguments.label(form.shape, name), "")


def _typed(value: str, schema: Mapping[str, object]) -> object:
    """The value as the schema's type; the text itself where it is none of it."""
    if schema.get("type") not in ("integer", "number", "boolean"):
        return value
    try:
        return json.loads(value.lower())
    except ValueError:
        return value


def _schema(question: FormQuestion) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string", "title": question.label}
    if question.kind == QuestionKind.EMAIL:
        schema["format"] = "email"
    if question.kind == QuestionKind.CHOICE:
        schema["enum"] = [line.strip() for line in question.choices.splitlines() if line.strip()]
    return schema

"""Rewrite and translate a draft, translate what the customer wrote, and summarize a conversation.

Without a model a draft can only be shortened, by whole sentences, and a summary quotes what was said.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from apps.bus.schemas import storable
from apps.copilot.enums import AssistanceKind
from apps.copilot.instructions import prompt_of, task_for
from apps.copilot.runs import Job, as_lines, no_model, request_output
from apps.copilot.schemas import MAX_TEXT, Draft
from apps.inbox import summaries
from apps.sessions import rules
from apps.sessions.enums import Sender
from apps.sessions.queries import Said
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import LANGUAGES, gettext
from llm.language_detection import detect_language
from llm.models import GROUNDED
from llm.structured_output import StructuredRequest

# The newest messages of a conversation that a model reads, in characters.
MOST_CHARS = 24_000
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)\s*")


class Written(BaseModel):
    """The only shape of a model's answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(storable)]


async def rewrite(job: Job) -> Draft:
    kind = job.request.kind
    if not job.has_model:
        if kind != AssistanceKind.SHORTER:
            raise no_model()
        return Draft(text=shortened(job.draft), model_name=GROUNDED)
    language = LANGUAGES[customer_language(job)] if kind == AssistanceKind.TRANSLATE_REPLY else ""
    return await _written(job, StructuredRequest(task_for(kind, language=language), (("draft", job.draft),)), ())


async def translate_message(job: Job) -> Draft:
    message = job.readable_message()
    task = task_for(job.request.kind, language=LANGUAGES.get(job.request.language, LANGUAGES["en"]))
    return await _written(job, StructuredRequest(task, (("message of the customer", message.shown),)), (message,))


async def summarize(job: Job) -> Draft:
    job.readable_message()
    said = newest_within(job.said, MOST_CHARS)
    if not job.has_model:
        text = summaries.quoted([(one.sender, one.shown) for one in said])
        return Draft(text=text, model_name=GROUNDED, seqs=tuple(one.seq for one in said))
    task = task_for(AssistanceKind.SUMMARY, language=LANGUAGES.get(job.request.language, LANGUAGES["en"]))
    return await _written(job, StructuredRequest(task, (("conversation", as_lines(said)),)), said)


def customer_language(job: Job) -> str:
    """What the customer wrote last, as far as it can be told; else their browser's, else English."""
    told = rules.language_of(job.session)
    if told in LANGUAGES:
        return told
    return detect_language(one.shown for one in reversed(job.said) if one.sender == Sender.VISITOR)


def newest_within(said: tuple[Said, ...], chars: int) -> tuple[Said, ...]:
    """The newest messages that fit, oldest first; the newest one in any case."""
    kept: list[Said] = []
    for one in reversed(said):
        chars -= len(one.shown)
        if chars < 0 and kept:
            break
        kept.append(one)
    return tuple(reversed(kept))


def shortened(text: str) -> str:
    """The first sentences, up to about half of the text. Raises 409 `no_model` for a text without a second one."""
    sentences = [match[0] for match in _SENTENCE.finditer(text) if match[0].strip()]
    if len(sentences) < 2:
        raise no_model()
    kept = sentences[:1]
    for sentence in sentences[1:-1]:
        if len("".join(kept)) + len(sentence) > len(text) * 0.6:
            break
        kept.append(sentence)
    return "".join(kept).strip()


async def _written(job: Job, inquiry: StructuredRequest, said: tuple[Said, ...]) -> Draft:
    written = await request_output(job, inquiry, Written)
    if not written.text.strip():
        raise SilasError(ErrorCode.ASSISTANCE_NOTHING, gettext("The model returned nothing. Try again."))
    return Draft(
        text=written.text.strip(),
        model_name=job.model,
        prompt=prompt_of(job.request.kind),
        seqs=tuple(one.seq for one in said),
    )

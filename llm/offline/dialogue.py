"""Derive from the history which task the visitor and the bot are in the middle of. Pure.

Nothing is stored between turns: the task is derived from the recorded conversation each time. It is closed by any
message of the bot that asks for nothing, by a person's reply, and by "never mind".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from llm.briefing import Briefing, HistoryMessage, ToolBrief
from llm.offline import arguments, values
from llm.offline.intents import is_cancel, looks_like_question, says_who, wants_person
from llm.offline.matching import best_match, has_id
from llm.offline.phrases import FIRST_WHO, NOT_CONFIRMED

_READ_AT_MOST = 2000


@dataclass(frozen=True)
class Task:
    """A tool that the visitor wants and the arguments so far.

    `asked` is the argument that the bot asked for last, `times` how often.
    """

    tool: ToolBrief
    args: dict[str, Any] = field(default_factory=dict)
    asked: str | None = None
    times: int = 0


@dataclass(frozen=True)
class State:
    """`task` is open; `held` waits for the visitor's identity, `told` says that they have given some of it.

    `aside` was open when the visitor asked for something else; `last` is the tool that was wanted before; `answered`
    says that the latest message gave the argument asked for.
    """

    task: Task | None = None
    held: Task | None = None
    told: bool = False
    aside: Task | None = None
    last: ToolBrief | None = None
    answered: bool = False


def states_before_and_after(briefing: Briefing) -> tuple[State, State]:
    """The state of the conversation before and after the visitor's message."""
    known = (*briefing.tools, *(withheld.tool for withheld in briefing.withheld))
    before: State = reduce(
        lambda state, message: _apply_message(state, message, known, briefing.today), _history_before(briefing), State()
    )
    return before, _apply_visitor(before, text_of(briefing), known, briefing.today)


def text_of(briefing: Briefing) -> str:
    return briefing.text[:_READ_AT_MOST]


def _history_before(briefing: Briefing) -> tuple[HistoryMessage, ...]:
    """The history without the current message, if it is recorded there already."""
    history = briefing.history
    if history and history[-1].sender == "visitor" and history[-1].text == briefing.text:
        return history[:-1]
    return history


def _apply_message(state: State, message: HistoryMessage, known: Iterable[ToolBrief], today: str) -> State:
    match message.sender:
        case "visitor":
            return _apply_visitor(state, message.text[:_READ_AT_MOST], known, today)
        case "bot":
            return _apply_bot(state, message.text)
        case "human":
            return State()
        case _:
            return state


def _apply_visitor(state: State, text: str, known: Iterable[ToolBrief], today: str) -> State:
    state = replace(state, answered=False, told=state.told or (state.held is not None and tells_who(text, today)))
    task = state.task
    if is_cancel(text) and not (task and _is_choice(task, text)):
        return State(last=state.last)
    if task is not None:
        given = _collect_arguments(task, text, today)
        if task.asked in given or (given and not _wants_other_tool(task, text, known)):
            more = replace(task, args=task.args | given)
            return replace(state, task=more, answered=task.asked is None or task.asked in given)
    return _start_task(state, text, known, today)


def _is_choice(task: Task, text: str) -> bool:
    """ "Changed my mind" may be one of the choices that were asked for."""
    schema = arguments.properties(task.tool).get(task.asked or "", {})
    return "enum" in schema and values.find_choice(text, schema["enum"]) is not None


def _collect_arguments(task: Task, text: str, today: str) -> dict[str, object]:
    if task.asked is not None and (wants_person(text) or _is_aside(task, text)):
        return {}
    return arguments.collect(task.tool, text, asked=task.asked, today=today)


def _is_aside(task: Task, text: str) -> bool:
    """A question in return, unless it holds an id that the tool takes ("is it POL-1?")."""
    return looks_like_question(text) and not has_id(text, task.tool)


def _wants_other_tool(task: Task, text: str, known: Iterable[ToolBrief]) -> bool:
    match = best_match(text, known)
    return match is not None and match.tool.name != task.tool.name


def _start_task(state: State, text: str, known: Iterable[ToolBrief], today: str) -> State:
    match = best_match(text, known)
    if match is not None:
        return _task_for(state, match.tool, text, today)
    if state.task is None and state.last is not None and _only_another_id(state.last, text):
        return _task_for(state, state.last, text, today)
    return state


def _only_another_id(tool: ToolBrief, text: str) -> bool:
    """ "And CLM-2?" after an answer about CLM-1."""
    return has_id(text, tool) and len(arguments.other_words(tool, text)) <= 1


def _task_for(state: State, tool: ToolBrief, text: str, today: str) -> State:
    args = arguments.collect(tool, text, today=today)
    before = state.task.args if state.task is not None and state.task.tool.name == tool.name else {}
    return State(task=Task(tool, before | args), held=state.held, aside=state.task, last=tool)


def _apply_bot(state: State, text: str) -> State:
    if FIRST_WHO in text:
        return State(held=state.task or state.held, last=state.last)
    for task in filter(None, (state.task, state.aside, state.held)):
        if (name := _question_asked(task.tool, text)) is not None:
            times = task.times + 1 if name == task.asked else 1
            return State(task=replace(task, asked=name, times=times), last=task.tool)
    return State(held=state.held, told=state.told and NOT_CONFIRMED not in text, last=state.last)


def _question_asked(tool: ToolBrief, text: str) -> str | None:
    """The argument whose question is part of the bot's message."""
    plain = " ".join(text.split())
    names = arguments.properties(tool)
    return next((name for name in names if " ".join(arguments.question(tool, name).split()) in plain), None)


def identifies(before: State, text: str, today: str) -> bool:
    """Whether the message answers "who are you"; once answered, only another date of birth does."""
    return (
        before.held is not None and tells_who(text, today) and (not before.told or bool(values.find_date(text, today)))
    )


def tells_who(text: str, today: str) -> bool:
    """Whether the visitor gives a name, a date of birth or both, and asks for nothing else."""
    dated = values.find_date(text, today) is not None or values.mentions_date(text)
    return not looks_like_question(text) and (dated or says_who(text))

"""The text of a tool's exception holds what it was given: it reaches no log, no trace, no audit entry and no row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from apps.guard import registry, services
from apps.guard.enums import Intent, Phase
from apps.guard.schemas import CallContext, CallFailed, Failed, HandlerResult
from tests.connections.secret_search import Watch, watching
from tests.factories.guard import make_call, make_run
from tests.guard.conftest import handle as handle
from tests.skills.test_runs import Desk as SkillDesk
from tests.toolservers.conftest import Desk
from tests.toolservers.conftest import desk as desk
from tests.toolservers.conftest import fake as fake

SECRET, VISITOR = "sk-live-4f9a8c7b6d5e", "my daughter is ill and I cannot pay"
INTENTS = [intent for intent in Intent if intent in registry._handlers]


class Unkind(Exception):
    """Says what it was given, in its text, its arguments and its notes."""


def raising(_: CallContext) -> HandlerResult:
    try:
        raise ValueError(f"token {SECRET}")
    except ValueError as error:
        unkind = Unkind(f"{VISITOR}: {SECRET}")
        unkind.add_note(VISITOR)
        raise unkind from error


def failing(_: CallContext) -> HandlerResult:
    raise CallFailed("tool_failure", f"{VISITOR}: {SECRET}")


@pytest.fixture
def watch(superuser_dsn: str) -> Iterator[Watch]:
    """Every log at its most talkative, what tracers are told, what goes over Redis, every table and every file."""
    with watching(superuser_dsn, SECRET, VISITOR) as found:
        yield found


@pytest.mark.parametrize("handler", [raising, failing])
def test_exception_text_of_a_handler_is_written_nowhere_whatever_the_way(
    tenant: Any, handle: Callable[..., None], watch: Watch, handler: Any
) -> None:
    reached = set()
    for intent, phase in product(INTENTS, Phase):
        handle(handler, intent)
        outcome = asyncio.run(services.guarded_call(make_run(tenant, phase=phase).ref, intent, make_call()))
        if isinstance(outcome, Failed):
            reached.add(intent)
        if handler is raising:  # what a handler says of its own will is an answer, in memory
            watch.told("outcome", repr(outcome))
    # A search of the web for words that nobody said is refused before its handler.
    assert reached == {*INTENTS} - {Intent.WEB_SEARCH}
    assert watch.found() == []


SCRIPTS = {
    "raises": f'raise RuntimeError("{VISITOR}: {SECRET}")',
    "exits": f'raise SystemExit("{VISITOR}: {SECRET}")',
    "writes beside": f'import sys; sys.stderr.write("{VISITOR}: {SECRET}"); sys.exit(3)',
    "prints garbage": f'print("{VISITOR}: {SECRET}")',
}


@pytest.mark.parametrize("way", SCRIPTS)
def test_exception_text_of_a_skills_script_is_written_nowhere(
    tenant: Any, tmp_path: Path, superuser_dsn: str, way: str
) -> None:
    """The script itself is a file of its skill: what it says is put together when it runs."""
    source = "".join(f"chr({ord(char)})+" for char in f"{VISITOR}: {SECRET}") + "''"
    script = SCRIPTS[way].replace(f'"{VISITOR}: {SECRET}"', source)
    skill = SkillDesk(tenant, tmp_path).install(show=script)
    with watching(superuser_dsn, SECRET, VISITOR) as watch:
        outcome = skill.call("show")
        assert isinstance(outcome, Failed)
        watch.told("outcome", repr(outcome))
    assert watch.found() == []


def test_error_text_of_a_tool_server_is_written_nowhere(desk: Desk, superuser_dsn: str) -> None:
    desk.listed().accept("look-up")
    said = [types.TextContent(type="text", text=f"{VISITOR}: {SECRET}")]
    desk.fake.answer = lambda name, args: types.CallToolResult(content=said, is_error=True)
    with watching(superuser_dsn, SECRET, VISITOR) as watch:
        outcome = desk.call("crm_look_up")
        assert isinstance(outcome, Failed)
        assert SECRET not in outcome.code
    assert watch.found() == []

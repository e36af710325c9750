"""A secret leaves its seal only in the process of a script.

One whole life of a connection is searched for it: set-up by a secure field, a tool used by a model, a renewal, a crash,
a failure. The search finds what is planted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.urls import reverse
from opentelemetry import trace
from pydantic_ai.models import override_allow_model_requests

from apps.approvals.models import Card
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection
from apps.connections.services import lifecycle
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from tests.connections.links import WITH_LETTERS, link, said_yes
from tests.connections.secret_search import FILES, LOG, PROCESSES, STOPS, TRACES, WIRE, Watch, watching
from tests.connections.test_secrets import send
from tests.connections.test_setup import Beside, attend_owed, credentials_of
from tests.console.test_live import _ready
from tests.factories.connections import check_due, make_connection, reread
from tests.factories.console import browser
from tests.factories.sessions import answered
from tests.factories.work import adopt
from tests.fakes.openai_server import FakeOpenAI, Reply, direct, serving

CANARY, RENEWED = "canary-5a1b-typed-by-hand", "canary-77c0-made-at-renewal"
MODEL = "openai-chat:gpt-4o-mini"
# The step after the secret waits: meanwhile the script holds it.
SETUP = """
start = hear()
guidance = {"instructions": "Make a key in the settings."}
ask("key", type="secure_input", request={"name": "api_key", "label": "Key", "guidance": guidance})
key = secrets()["api_key"]
ask("code", type="device_code", verification_url="https://login.example.test/", user_code="AB", expires_in=600)
complete(permissions_granted=start["initial_permissions"], identity=str(len(key)))
"""
# Each of the others stops while it holds the secret, and is looked at.
LETTERS = STOPS + '\nsay({"letters": len(held["api_key"])})'
# The next letter of each: what a script holds in its source is no secret, and would be found.
RENEW = f"""
{STOPS}
hand_over(api_key="".join(chr(ord(each) - 1) for each in {"".join(chr(ord(each) + 1) for each in RENEWED)!r}))
say({{"success": True, "new_expires_at": None}})
"""
# What a hasty author writes: the secret in a traceback; and a crash with the secret in memory.
SICK = STOPS + '\nraise RuntimeError("the service did not take " + held["api_key"])'
CRASHES = f"{STOPS}\nos.abort()"
GOAL = """---
id: goal
type: goal
title: Look after letters
schedule: always_on
skills: [test-link]
access_levels:
  public: {tools: [letters]}
---
Be kind.
"""


@pytest.fixture
def watch(superuser_dsn: str) -> Iterator[Watch]:
    with watching(superuser_dsn, CANARY, RENEWED) as found:
        yield found


@pytest.fixture(autouse=True)
def no_core_is_left() -> Iterator[None]:
    before = set(Path.cwd().glob("core*"))
    yield
    assert set(Path.cwd().glob("core*")) == before


async def test_secret_stands_nowhere_but_under_its_seal(
    tenant: Any, owner: Any, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await _ready(owner)
    row = await in_thread(_set_up, tenant, owner, watch)
    with watch.looking_at_stopped() as seen:
        await _use(tenant, watch, monkeypatch)
        await in_thread(_renew_and_fail, tenant, row)
    assert set(seen) == {"letters.py", "refresh_token.py", "health_check.py", "recover.py"}
    await in_thread(_look_around, owner, row, watch)
    watch.told("frames", await _frames(line))
    assert await in_thread(credentials_of, tenant, row) == {"api_key": RENEWED}
    assert watch.found() == []


def _set_up(tenant: Any, owner: Any, watch: Watch) -> Connection:
    row = link(
        tenant, WITH_LETTERS, setup=SETUP, letters=LETTERS, refresh_token=RENEW, health_check=SICK, recover=CRASHES
    )
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    ref = beside.asks().step["request"]["ref_id"]
    watch.told("pages", _page(owner, row))
    assert send(owner, ref, {"value": CANARY}).status_code == 200
    beside.asks_for("code")
    watch.look_at_processes()
    watch.look_at_files()
    watch.told("pages", _page(owner, row))
    with tenant_scope(tenant):
        lifecycle.answer(row.pk, step_id="code", action="done", actor="system")
    assert beside.ends().state == SetupState.DONE
    return row


async def _use(tenant: Any, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a visitor's turn in which the model calls the tool and reads its answer."""
    async with serving([Reply(calls=(("letters", "{}"),)), direct("There are some.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        deployment = await in_thread(_desk, tenant)
        with override_allow_model_requests(True):
            await answered(deployment, "How many letters are there?")
    assert str(len(CANARY)) in _said_by_tools(model)
    watch.told("prompts", json.dumps(model.requests))


def _said_by_tools(model: FakeOpenAI) -> str:
    return " ".join(str(one["content"]) for one in model.requests[-1]["messages"] if one["role"] == "tool")


def _desk(tenant: Any) -> Any:
    desk = adopt(tenant, GOAL)
    desk.deployment.model_names, desk.deployment.environment_keys = {"proxy": MODEL}, True
    with tenant_scope(tenant):
        desk.deployment.save(update_fields=["model_names", "environment_keys"])
    return desk.deployment


def _renew_and_fail(tenant: Any, row: Connection) -> None:
    _due(tenant, token_expires_at=now() + timedelta(minutes=1))
    assert check_due(tenant) == 1
    _due(tenant, token_expires_at=None)
    assert check_due(tenant) == 1
    assert reread(row).status == ConnectionStatus.FAILED
    attend_owed(tenant)


def _due(tenant: Any, **fields: Any) -> None:
    with tenant_scope(tenant):
        Connection.objects.update(next_check_at=now() - timedelta(seconds=1), **fields)


def _look_around(owner: Any, row: Connection, watch: Watch) -> None:
    """Open the pages that a member can look at afterwards."""
    client = browser(owner)
    with tenant_scope(row.tenant_id):
        cards = [reverse("console-card", args=[card.pk]) for card in Card.objects.all()]
    api = f"/api/v1/connections/{row.pk}"
    for address in ["/api/v1/connections", api, f"{api}/setup", reverse("console-connections"), *cards]:
        answer = client.get(address)
        assert answer.status_code == 200, address
        watch.told("pages", answer.content)
    watch.told("pages", _page(owner, row))


def _page(owner: Any, row: Connection) -> bytes:
    return bytes(browser(owner).get(reverse("console-connection", args=[row.pk])).content)


async def _frames(line: WebsocketCommunicator) -> str:
    said = []
    while not await line.receive_nothing(0.3):
        said.append(await line.receive_output(1))
    await line.disconnect()
    assert said
    return json.dumps(said)


# --- the search finds what is planted


@pytest.mark.parametrize("dress", [CANARY, CANARY[::-1], CANARY.encode().hex()])
def test_planted_line_in_a_log_is_found(watch: Watch, dress: str) -> None:
    logging.getLogger("apps.connections.planted").debug("held %s", dress)
    assert watch.found() == [LOG]


@pytest.mark.parametrize("way", ["name", "attribute", "exception"])
def test_planted_span_is_found(watch: Watch, way: str) -> None:
    with trace.get_tracer("planted").start_as_current_span(CANARY if way == "name" else "planted") as span:
        span.set_attribute("held", CANARY if way == "attribute" else "nothing")
        span.record_exception(RuntimeError(CANARY if way == "exception" else "nothing"))
    assert watch.found() == [TRACES]


def test_planted_message_and_frame_are_found(watch: Watch) -> None:
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.publish("planted", f'{{"what": "{CANARY}"}}')
    client.close()
    for _ in range(100):
        if any(CANARY.encode() in said for said in watch.heard[WIRE]):
            break
        asyncio.run(asyncio.sleep(0.05))
    assert watch.found() == [WIRE]


def test_planted_row_is_found_whoevers_it_is(watch: Watch, other_tenant: Any) -> None:
    planted = make_connection(other_tenant, settings={"at": f"https://{CANARY}/"})
    found = watch.found()
    with tenant_scope(other_tenant):
        planted.delete()
    assert found == ["connections_connection"]


@pytest.mark.parametrize("way", ["environment", "argument"])
def test_planted_start_of_a_process_is_found(watch: Watch, way: str) -> None:
    argv = [sys.executable, "-c", "input()", *([CANARY] if way == "argument" else [])]
    env = {**os.environ, **({"KEY": CANARY} if way == "environment" else {})}
    process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE)
    watch.look_at_processes()
    process.communicate(b"\n")
    assert watch.found() == [PROCESSES]


def test_planted_file_is_found(watch: Watch) -> None:
    with tempfile.TemporaryDirectory(prefix="sandbox-") as folder:
        (Path(folder) / "call.json").write_text(CANARY)
        assert watch.found() == [FILES]


def test_planted_page_is_found(watch: Watch) -> None:
    watch.told("pages", f"<p>{CANARY}</p>")
    assert watch.found() == ["pages"]

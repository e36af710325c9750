"""A model request between admission and charge."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from apps.guard import services
from apps.guard.schemas import Call
from llm import loading
from llm.runs import Usage
from tests.factories.guard import make_run


def test_what_models_run_with_is_loaded_before_the_request_and_not_in_its_event_loop(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_ready", threading.Event())
    was_loaded: list[bool] = []

    async def ask() -> tuple[str, Usage]:
        was_loaded.append(loading._ready.is_set())
        return "answer", Usage()

    run = make_run(tenant)
    call = Call(tool="any", model="builtin:grounded", forecast=Usage())
    assert asyncio.run(services.call_model(tenant.pk, run.ref, call, ask)) == "answer"
    assert was_loaded == [True]

"""The first skill in docs/skills.md works: it is taken from the page, imported, approved and called."""

import asyncio
import re
from pathlib import Path
from uuid import uuid4

import pytest

from apps.guard import services as guard
from apps.guard.enums import Intent, Origin
from apps.guard.schemas import Call, Done, Failed
from apps.skills import imports, queries, roles
from kernel.tenancy import tenant_scope
from tests.factories.skills import answer

PAGE = (Path(__file__).parents[2] / "docs/skills.md").read_text()


@pytest.fixture
def installed(tenant, approver, tmp_path):
    folder = tmp_path / "word-count"
    (folder / "scripts").mkdir(parents=True)
    for name, text in re.findall(r"`word-count/([\w/.]+)`:\n\n```\w+\n(.*?)```\n", PAGE, re.S):
        (folder / name).write_text(text)
    with tenant_scope(tenant):
        version = imports.import_skill(imports.from_folder(folder), by=approver)
    answer(tenant, version, approver)
    return version


def called(tenant, **args):
    with tenant_scope(tenant):
        ref = guard.open_run(Origin.CHAT, uuid4(), deployment_id=None).ref
        context = {"customer": "", "skills": queries.pin(["word-count"])}
    call = Call(tool="word_count_count", args=args, access=frozenset({"word_count_count"}))
    return asyncio.run(guard.guarded_call(ref, Intent.RUN_SKILL, call, context=context))


def test_first_skill_of_the_page_answers(tenant, installed):
    done = called(tenant, text="a few words", least=2)
    assert isinstance(done, Done)
    assert done.value == {"output": "2"}


def test_first_skill_of_the_page_takes_its_default(tenant, installed):
    assert called(tenant, text="a few words").value == {"output": "3"}


@pytest.mark.parametrize(
    "args", [{}, {"text": 1}, {"text": "x", "least": 0}, {"text": "x", "odd": 1}, {"text": "x" * 2001}]
)
def test_arguments_that_are_not_declared_are_refused_before_the_sandbox(tenant, installed, args):
    refused = called(tenant, **args)
    assert isinstance(refused, Failed)
    assert refused.code == "bad_arguments"  # what a script that was started refuses is called script_failed


def test_text_that_looks_like_an_option_is_a_text(tenant, installed):
    assert called(tenant, text="--least=9 words").value == {"output": "2"}


def test_each_agent_sees_its_part(tenant, installed):
    with tenant_scope(tenant):
        assert [one.name for one in roles.proxy_view(roles.active_skills(["word-count"]), budget=100)] == ["word-count"]
        assert "Tell the number" in roles.instructions(["word-count"])[0].instructions
        assert "- word_count_count: scripts/count.py" in roles.executor_view(["word-count"])[0].instructions

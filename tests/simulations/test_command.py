"""`manage.py simulate`: a report, files for CI, and an exit code that says whether all passed."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.simulations.reports import read
from tests.factories.simulations import HELLO, make_suite

WRONG = {**HELLO, "checks": [{"kind": "says", "words": ["zebra"]}]}


def simulate(*arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command("simulate", *arguments, stdout=out, **options)
    return out.getvalue()


def test_passing_suite_ends_well_and_writes_both_files(deployment: Any, tmp_path: Path) -> None:
    make_suite(deployment)
    files = {"json": tmp_path / "run.json", "junit": tmp_path / "run.xml"}
    told = simulate(deployment.public_key, **files)
    assert "1 of 1 scenarios passed; 1 turns, 0 left out" in told
    assert read(files["json"]).passed
    assert 'failures="0"' in files["junit"].read_text()


def test_failing_scenario_ends_with_one_and_is_named_with_what_changed(deployment: Any, tmp_path: Path) -> None:
    make_suite(deployment)
    simulate(deployment.public_key, json=tmp_path / "before.json")
    make_suite(deployment, hello=WRONG)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("simulate", deployment.public_key, compare=tmp_path / "before.json", stdout=out)
    assert ended.value.code == 1
    assert "does not say 'zebra'" in out.getvalue()
    assert "fails now: hello" in out.getvalue()


def test_nothing_to_play_ends_with_two(deployment: Any) -> None:
    make_suite(deployment)
    with pytest.raises(SystemExit) as ended:
        simulate(deployment.public_key, only="no such name")
    assert ended.value.code == 2


@pytest.mark.parametrize("options", [{"suite": "none"}, {"load": Path("/nowhere")}, {"compare": Path("/nowhere")}])
def test_wish_that_cannot_be_met_is_an_error(deployment: Any, options: Any) -> None:
    make_suite(deployment)
    with pytest.raises(CommandError):
        simulate(deployment.public_key, **options)


def test_unknown_deployment_is_an_error(database: None) -> None:
    with pytest.raises(CommandError):
        simulate("nobody")


def test_scenarios_of_a_folder_are_written_first(deployment: Any, tmp_path: Path) -> None:
    text = f"deployment: {deployment.public_key}\nconversations: [{{name: hi, turns: [{{say: Hello}}]}}]"
    (tmp_path / "small.yaml").write_text(text)
    assert "1 of 1 scenarios passed" in simulate(deployment.public_key, load=tmp_path, suite="small")

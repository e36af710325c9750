"""A run reports how it ended: exit code, JSON, JUnit, and what changed since an earlier one."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import pytest

from apps.simulations.reports import Result, Run, changes, read, write_json, write_junit
from apps.simulations.schemas import Said
from evals import __main__ as command

SAID = Said(visitor="hello", bot="Hi\x00 there", route="direct", tools=[], level="public", work="none", answered_by="m")


def _result(name: str, *misses: str) -> Result:
    return Result(name=name, misses=list(misses), cost_usd=Decimal("0.02"), conversation=[SAID])


def _run(*results: Result, left_out: tuple[str, ...] = ()) -> Run:
    return Run(model="m", results=list(results), left_out=list(left_out))


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (_run(_result("a")), 0),
        (_run(_result("a"), _result("b", "says nothing")), 1),
        (_run(), 2),
        (_run(_result("a"), left_out=("b",)), 2),
    ],
)
def test_exit_code_tells_how_the_run_ended(run: Run, code: int) -> None:
    assert run.exit_code == code


def test_run_that_left_something_out_has_not_passed() -> None:
    assert not _run(_result("a"), left_out=("b",)).passed


def test_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    run = _run(_result("a"), _result("b", "says nothing"), left_out=("c",))
    write_json(run, tmp_path / "run.json")
    assert read(tmp_path / "run.json") == run


def test_junit_counts_failures_and_what_was_left_out(tmp_path: Path) -> None:
    write_junit(_run(_result("a"), _result("b", "says '\x00<x>'"), left_out=("c",)), tmp_path / "run.xml")
    suite = ElementTree.parse(tmp_path / "run.xml").getroot()
    assert suite.get("tests") == "3"
    assert suite.get("failures") == "1"
    assert suite.get("skipped") == "1"
    assert [case.get("name") for case in suite.iter("testcase")] == ["a", "b", "c"]
    assert [told.text for told in suite.iter("failure")] == ["says '<x>'"]


def test_changes_name_what_is_otherwise_than_before() -> None:
    before = _run(_result("same"), _result("broken"), _result("mended", "x"), _result("gone"))
    now = _run(_result("same"), _result("broken", "x"), _result("mended"), _result("added"))
    assert changes(before, now) == [
        "fails now: broken",
        "passes now: mended",
        "new, passes: added",
        "not played: gone",
    ]


def test_report_says_that_nothing_changed() -> None:
    run = _run(_result("a"))
    assert command.report(run, run).endswith("nothing changed since the earlier run")


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "much"])
def test_budget_that_is_no_amount_is_refused(amount: str) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--budget", amount])
    assert ended.value.code == 2


def test_script_with_a_mistake_ends_with_two(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("deployment: [")
    assert command.main(["--suite", str(tmp_path)]) == 2


def test_earlier_run_that_cannot_be_read_ends_with_two(tmp_path: Path) -> None:
    assert command.main(["--compare", str(tmp_path / "none.json")]) == 2

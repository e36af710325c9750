"""What a run of conversations gave: exit code, JSON with every conversation, JUnit for CI, changes since."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict

from apps.simulations.schemas import Said

PASSED, FAILED, ERROR = 0, 1, 2
_NOT_IN_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Result(BaseModel):
    """One conversation: passed when nothing was missed. `cost_usd` is what the spend ledger says. `player` is the model
    that played the visitor, empty for a script; `ending` is why it stopped."""

    model_config = ConfigDict(extra="forbid")
    name: str
    misses: list[str]
    cost_usd: Decimal
    player: str = ""
    ending: str = ""
    conversation: list[Said]

    @property
    def passed(self) -> bool:
        return not self.misses


class Run(BaseModel):
    """All conversations of one run with one model; `left_out` were not begun, because the budget was spent."""

    model_config = ConfigDict(extra="forbid")
    model: str
    results: list[Result]
    left_out: list[str] = []

    @property
    def passed(self) -> bool:
        return self.exit_code == PASSED

    @property
    def exit_code(self) -> int:
        """`ERROR` for a run that is not whole: it proves nothing of what it left out."""
        if self.left_out or not self.results:
            return ERROR
        return PASSED if all(one.passed for one in self.results) else FAILED

    @property
    def cost_usd(self) -> Decimal:
        return sum((one.cost_usd for one in self.results), Decimal(0))


def read(path: Path) -> Run:
    """A run written by `write_json`. Raises `OSError` or pydantic's `ValidationError`."""
    return Run.model_validate_json(path.read_bytes())


def write_json(run: Run, path: Path) -> None:
    path.write_text(run.model_dump_json(indent=2) + "\n")


def write_junit(run: Run, path: Path) -> None:
    """One test case a conversation; those left out are skipped."""
    failures = sum(not one.passed for one in run.results)
    counts = {"tests": len(run.results) + len(run.left_out), "failures": failures, "skipped": len(run.left_out)}
    suite = ElementTree.Element("testsuite", {"name": run.model, **{name: str(n) for name, n in counts.items()}})
    for one in run.results:
        case = ElementTree.SubElement(suite, "testcase", name=one.name, classname="conversations")
        if one.misses:
            told = ElementTree.SubElement(case, "failure", message=_printable(one.misses[0]))
            told.text = _printable("\n".join(one.misses))
    for name in run.left_out:
        case = ElementTree.SubElement(suite, "testcase", name=name, classname="conversations")
        ElementTree.SubElement(case, "skipped", message="the budget was spent")
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


class Difference(StrEnum):
    """How a conversation came out otherwise than in an earlier run."""

    PASSES = "passes now"
    FAILS = "fails now"
    NEW_PASSES = "new, passes"
    NEW_FAILS = "new, fails"
    GONE = "not played"


def differences(before: Run, now: Run) -> list[tuple[Difference, str]]:
    """What is otherwise than in an earlier run, by name of the conversation, in the order of this run."""
    earlier = {one.name: one.passed for one in before.results}
    found = []
    for one in now.results:
        if one.name not in earlier:
            found.append((Difference.NEW_PASSES if one.passed else Difference.NEW_FAILS, one.name))
        elif earlier[one.name] != one.passed:
            found.append((Difference.PASSES if one.passed else Difference.FAILS, one.name))
    gone = earlier.keys() - {one.name for one in now.results}
    return found + [(Difference.GONE, name) for name in earlier if name in gone]


def changes(before: Run, now: Run) -> list[str]:
    """`differences`, a line each."""
    return [f"{what}: {name}" for what, name in differences(before, now)]


def _printable(text: str) -> str:
    """Without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("", text)

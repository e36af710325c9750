"""How the source reads: file names, docstrings, and who may speak to PostgreSQL about tenants."""

from __future__ import annotations

import ast
import re

from tests.architecture.source import ROOT, Module, modules

FORBIDDEN = {"utils", "helpers", "mixins", "constants", "misc", "common"}


def own() -> list[Module]:
    return [module for module in modules() if ".migrations." not in module.name]


def test_no_file_is_named_for_nothing() -> None:
    assert [module.name for module in modules() if FORBIDDEN & set(module.name.split("."))] == []


def test_no_app_is_called_channels() -> None:
    assert not (ROOT / "apps" / "channels").exists()


def test_every_module_says_what_it_answers() -> None:
    silent = [module.name for module in own() if len(module.tree.body) > 3 and not ast.get_docstring(module.tree)]
    assert silent == []


def test_only_tenancy_tells_database_who_we_are() -> None:
    makes = re.compile(r"set_config\(\s*'silas\.|\bSET\s+(LOCAL\s+|SESSION\s+)?silas\.", re.IGNORECASE)
    speakers = {
        module.name
        for module in own()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and makes.search(node.value)
    }
    assert speakers == {"kernel.tenancy.scope", "kernel.tenancy.migrations"}


def test_tests_do_not_mock() -> None:
    mocking = [path for path in (ROOT / "tests").rglob("*.py") if "unittest.mock" in path.read_text()]
    assert [str(path.relative_to(ROOT)) for path in mocking if path.name != "test_words.py"] == []

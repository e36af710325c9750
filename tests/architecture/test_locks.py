"""A row lock that shuts out foreign keys is a deadlock in waiting.

PostgreSQL checks our foreign keys at COMMIT, when a transaction already holds the audit head: whoever then waits for a
row that is locked FOR UPDATE waits for somebody who waits for the audit head. `FOR NO KEY UPDATE` excludes rivals just
as well and lets such checks pass.
"""

from __future__ import annotations

import ast
import re

from tests.architecture.source import Module, modules

SHUTS_OUT = re.compile(r"\bFOR UPDATE\b", re.IGNORECASE)
# Nothing refers to a queue message or to an audit head.
UNREFERRED = {"apps.bus.sql.leases", "apps.audit.sql.chain"}


def shutting_locks(module: Module) -> list[str]:
    found = [f"{module.name}:{node.lineno}" for node in ast.walk(module.tree) if _shuts_out(node)]
    return [] if module.name in UNREFERRED else found


def _shuts_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(SHUTS_OUT.search(node.value)) and "`" not in node.value
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr == "select_for_update" and "no_key" not in {word.arg for word in node.keywords}


def test_row_locks_let_foreign_keys_pass() -> None:
    assert [place for module in modules() for place in shutting_locks(module)] == []


def test_lock_that_shuts_foreign_keys_out_is_found() -> None:
    text = "rows.select_for_update()\nrows.select_for_update(no_key=True)\nsql = 'SELECT 1 FROM a FOR UPDATE OF a'\n"
    module = Module("apps.example", __import__("pathlib").Path(), ast.parse(text))
    assert shutting_locks(module) == ["apps.example:1", "apps.example:3"]

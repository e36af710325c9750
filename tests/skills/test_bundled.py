"""The bundled skills do what they say, in real sandboxes and through the guard."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase
from apps.guard.schemas import ApprovedCalls, Call, Done, Failed, RunRef
from apps.skills import queries
from apps.skills.services import install_version
from apps.work.checks import checks_of
from apps.work.verification import run_checks
from kernel.tenancy import tenant_scope
from sandbox import Choice, configure
from silas_platform import demo
from tests.factories.skills import bundle

FILES = {
    "shop/prices.py": b"def total(prices):\n    return sum(prices)\n",
    "tests/test_prices.py": (
        b"import unittest\nfrom shop.prices import total\n\n\n"
        b"class Prices(unittest.TestCase):\n"
        b"    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n\n"
        b"    def test_cents(self):\n        self.assertEqual(total([0.1, 0.2]), 0.3)\n"
    ),
    "shop/__init__.py": b"",
    "tests/__init__.py": b"",
}
PATCH = """--- a/shop/prices.py
+++ b/shop/prices.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices)
+    return round(sum(prices), 2)
"""
NEW_FILE = "--- /dev/null\n+++ b/NOTES.md\n@@ -0,0 +1,1 @@\n+Round to cents.\n"


class Shelf:
    """A tenant with one bundled skill, and calls of its tools as the guard makes them."""

    def __init__(self, tenant: Any, skill: str) -> None:
        self.tenant = tenant
        with tenant_scope(tenant):
            install_version(demo.SKILLS / skill)
            self.refs = queries.pin([skill])
            self.tools = {tool.name: tool for tool in queries.tools_for(self.refs)}

    def call(self, name: str, inputs: dict[str, bytes] | None = None, /, **args: Any) -> Any:
        tool = self.tools[name]
        call = Call(tool=name, args=args, access=frozenset({name}), acting=tool.acting)
        approval = ApprovedCalls(nonce=uuid4().hex, calls=frozenset({call.digest})) if tool.acting else None
        with tenant_scope(self.tenant):
            run = guard.open_run(Origin.WORK, uuid4(), deployment_id=None, phase=Phase.EXECUTION, approval=approval)
        context = {"customer": "", "skills": self.refs, "inputs": inputs or {}}
        ref = RunRef(self.tenant.pk, run.pk, approval=approval)
        return asyncio.run(guard.guarded_call(ref, Intent.RUN_SKILL, call, context=context))

    def proved(self, name: str, artifacts: dict[str, bytes], /, **args: Any) -> bool:
        """What the tool's own checks say about the call and what it left."""
        tool = self.tools[name]
        with tenant_scope(self.tenant):
            mounts = queries.verification_mounts([tool], "", [{"tool": name, "args": args}])
        return bool(run_checks(checks_of([tool]), mounts={**mounts, "artifacts": artifacts}).results[0].passed)


def left_by(outcome: Any) -> dict[str, bytes]:
    return {name: base64.b64decode(content) for name, content in outcome.value["_artifacts"].items()}


@pytest.fixture
def coding(tenant: Any) -> Shelf:
    return Shelf(tenant, "coding")


def test_coding_finds_the_failing_test_and_the_patch_mends_it(coding: Shelf) -> None:
    before = coding.call("run_tests", FILES)
    assert before.value["count"] == 2
    assert len(before.value["failed"]) == 1
    patched = left_by(coding.call("apply_patch", FILES, patch=PATCH))
    after = coding.call("run_tests", {**FILES, **patched})
    assert after.value["passed"] is True


@pytest.mark.parametrize(("artifacts", "proved"), [({}, False), ({"shop/prices.py": b"def total(prices):\n"}, False)])
def test_coding_check_misses_what_was_not_patched(coding: Shelf, artifacts: dict[str, bytes], proved: bool) -> None:
    assert coding.proved("apply_patch", artifacts, patch=PATCH) is proved


def test_coding_check_proves_files_that_were_patched(coding: Shelf) -> None:
    left = left_by(coding.call("apply_patch", FILES, patch=PATCH + NEW_FILE))
    assert coding.proved("apply_patch", left, patch=PATCH + NEW_FILE)


@pytest.mark.parametrize(
    "patch",
    [
        PATCH.replace("return sum", "return max"),
        PATCH.replace("a/shop/prices.py", "a/../../etc/passwd").replace("b/shop/prices.py", "b/../../etc/passwd"),
        PATCH.replace("@@ -1,2", "@@ -1,9"),
        "this is no patch at all",
        NEW_FILE.replace("NOTES.md", "shop/prices.py"),
    ],
)
def test_coding_applies_no_patch_that_does_not_fit(coding: Shelf, patch: str) -> None:
    outcome = coding.call("apply_patch", FILES, patch=patch)
    assert isinstance(outcome, Failed) and outcome.code == "refused_by_tool"


def test_coding_sums_up_a_patch(coding: Shelf) -> None:
    outcome = coding.call("summarize_diff", patch=PATCH + NEW_FILE)
    assert outcome.value["added"] == 2
    assert outcome.value["removed"] == 1
    assert len(outcome.value["files"]) == 2


@pytest.fixture
def maker(tenant: Any) -> Shelf:
    return Shelf(tenant, "skill-maker")


WISH = "Use when a customer asks how many parcels of theirs are on the way."


def test_skill_maker_lays_out_files_that_it_finds_nothing_wrong_with(maker: Shelf) -> None:
    made = maker.call("new_skill", name="parcel-count", description=WISH, book="parcels")
    assert isinstance(made, Done)
    assert maker.call("lint_skill", files=made.value["files"]).value["problems"] == []


def test_skill_maker_lints_what_would_be_refused(maker: Shelf) -> None:
    files = {
        "SKILL.md": "---\nname: Bad_Name\ndescription: short\n---\n",
        "scripts/a.py": "eval('1')\npassword = 'hunter2hunter2'\n",
        "scripts/b.py": "def (",
    }
    told = " ".join(maker.call("lint_skill", files=files).value["problems"])
    assert all(word in told for word in ("the name is", "24 to 1024", "eval", "credential", "no Python", "no tests"))


class Shop(BaseHTTPRequestHandler):
    """A company's own API, and an address beside it that is not declared."""

    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "/secret")
            self.end_headers()
            return
        self._answer(json.dumps({"path": self.path}).encode())

    def do_POST(self) -> None:
        self.server.seen.append(self.rfile.read(int(self.headers["Content-Length"])).decode())  # type: ignore[attr-defined]
        self._answer(b'{"ok": true}')

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Quiet."""


class Api(Shelf):
    """http-api with a company's declared endpoints, and the server that they lead to."""

    def __init__(self, tenant: Any, tmp_path: Path, server: ThreadingHTTPServer) -> None:
        self.tenant, self.server = tenant, server
        place = f"127.0.0.1:{server.server_port}"
        folder = tmp_path / "http-api"
        shutil.copytree(demo.SKILLS / "http-api", folder)
        manifest = folder / "SKILL.md"
        manifest.write_text(manifest.read_text().replace("network: []", f'network: ["{place}"]'))
        endpoints = {
            "order": {"method": "GET", "url": f"http://{place}/orders/{{order}}", "query": ["lang"]},
            "away": {"method": "GET", "url": f"http://{place}/away"},
            "outside": {"method": "GET", "url": "http://127.0.0.1:9/x"},
            "note": {"method": "POST", "url": f"http://{place}/notes"},
        }
        (folder / "assets/endpoints.json").write_text(json.dumps(endpoints))
        bundle(folder)
        with tenant_scope(tenant):
            install_version(folder)
            self.refs = queries.pin(["http-api"])
            self.tools = {tool.name: tool for tool in queries.tools_for(self.refs)}

    @property
    def seen(self) -> list[str]:
        return list(self.server.seen)  # type: ignore[attr-defined]


@pytest.fixture
def api(tenant: Any, tmp_path: Path) -> Iterator[Api]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        server.seen = []  # type: ignore[attr-defined]
        configure(Choice(egress_private=(f"127.0.0.1:{server.server_port}",)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Api(tenant, tmp_path, server)
        server.shutdown()
        configure(Choice())


def test_http_api_reads_a_declared_endpoint_with_quoted_values(api: Api) -> None:
    outcome = api.call("read_endpoint", endpoint="order", values={"order": "../a b", "lang": "en"})
    assert outcome.value["value"] == {"path": "/orders/..%2Fa%20b?lang=en"}


@pytest.mark.parametrize(
    "args",
    [
        {"endpoint": "secret"},
        {"endpoint": "note"},
        {"endpoint": "order"},
        {"endpoint": "order", "values": {"order": ".."}},
        {"endpoint": "order", "values": {"order": "1", "admin": "1"}},
        {"endpoint": "outside"},
    ],
    ids=["undeclared", "writes", "value missing", "path", "value extra", "other host"],
)
def test_http_api_calls_nothing_that_is_not_declared(api: Api, args: dict[str, Any]) -> None:
    outcome = api.call("read_endpoint", **args)
    assert isinstance(outcome, Failed)
    assert api.seen == []


def test_http_api_follows_no_redirect(api: Api) -> None:
    assert isinstance(api.call("read_endpoint", endpoint="away"), Failed)
    assert api.seen == ["/away"]


def test_http_api_sends_once_and_proves_it_was_taken(api: Api) -> None:
    args = {"endpoint": "note", "body": '{"text": "hi"}'}
    left = left_by(api.call("send_endpoint", **args))
    assert api.seen == ['{"text": "hi"}']
    assert api.proved("send_endpoint", left, **args) is True
    refused = {"response.json": b'{"endpoint": "note", "status": 500}'}
    assert not api.proved("send_endpoint", refused, **args)


def test_http_api_as_it_ships_reaches_nothing(tenant: Any) -> None:
    assert isinstance(Shelf(tenant, "http-api").call("read_endpoint", endpoint="order"), Failed)


def test_no_script_of_a_skill_is_a_copy_of_the_library() -> None:
    library = {path.read_bytes() for path in (demo.SKILLS.parent / "silas_skill").glob("*.py")}
    copies = [path for path in demo.SKILLS.glob("*/**/*.py") if path.read_bytes() in library]
    assert copies == []

"""Which work may run at the same time: never with overlapping records or paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.skills.schemas import ToolSpec
from apps.work.conflicts import Claims, claims_of
from llm.calls import PlannedCall

PARTS = st.lists(st.sampled_from(["a", "b", "c", ".", ".."]), min_size=1, max_size=5)


def tool(name: str = "act", *, writes: tuple[str, ...] = (), path: bool = False, acting: bool = True) -> ToolSpec:
    kind: dict[str, Any] = {"type": "string", "format": "path"} if path else {"type": "string"}
    return ToolSpec.model_construct(
        name=name, acting=acting, writes=list(writes), args={"properties": {"where": kind}}, skill="s@0"
    )


def claims(where: str = "", *, subject: str = "C-1", **of: Any) -> Claims:
    return claims_of([PlannedCall("act", {"where": where})], [tool(**of)], subject)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (claims(writes=("orders",)), claims(writes=("orders", "refunds")), True),
        (claims(writes=("orders",)), claims(writes=("refunds",)), False),
        (claims(writes=("orders",)), claims(writes=("orders",), subject="C-2"), False),
        (claims("/a/b", path=True), claims("/a/b", path=True), True),
        (claims("/a", path=True), claims("/a/b/c", path=True), True),
        (claims("/a/b/c", path=True), claims("/a", path=True), True),
        (claims("/a/b", path=True), claims("/a/bc", path=True), False),
        (claims("/a/b", path=True), claims("/a/x/../b", path=True), True),
        (claims("../../a", path=True), claims("/a", path=True), True),
        (claims("/", path=True), claims("/anything", path=True), True),
        (claims(writes=("orders",), acting=False), claims(writes=("orders",)), False),
        (claims(), claims(), False),
        (claims(writes=("x" * 400,)), claims(writes=("x" * 400,)), True),
    ],
)
def test_claims_overlap(one: Claims, other: Claims, overlap: bool) -> None:
    assert one.overlaps(other) == overlap
    assert other.overlaps(one) == overlap


@given(PARTS, PARTS)
def test_path_below_a_claimed_one_always_overlaps(above: list[str], below: list[str]) -> None:
    parent = "/" + "/".join(above)
    inside = [part for part in below if part not in ("..",)]
    assert claims(parent, path=True).overlaps(claims(f"{parent}/{'/'.join(inside)}", path=True))


@given(st.text(max_size=600))
def test_path_of_any_text_claims_itself(text: str) -> None:
    assert claims(text, path=True).overlaps(claims(text, path=True))

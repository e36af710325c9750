"""Bad gates, seen when they are made; and the same gates at run time, where every one of them is a no."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gates.predicates import judge
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates, write_version
from apps.gates.validation import problems_of
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

MESSAGE = "every_user_message"
NAN, INF = float("nan"), float("inf")


def gate(**fields: Any) -> GateSpec:
    return GateSpec(**{"name": "g", "on": MESSAGE, "type": "custom_check", **fields})


GOOD: list[dict[str, Any]] = [
    {"type": "regex", "config": {"pattern": ".", "ignore_case": True, "multiline": True}},
    {"type": "regex", "config": {"redact": "x", "with": "y"}},
    {"type": "string_match", "allowed_values": ["a"]},
    {"type": "string_match", "approval_values": ["a"], "config": {"max_chars": 10}},
    {"type": "numeric_range", "auto_approve": {"min": 0, "max": 0}},
    {"type": "numeric_range", "require_approval": {"min": 0, "max": 1}, "config": {"clamp": True}},
    {"type": "approval_always"},
    {"type": "file_valid", "extract": "path", "config": {"roots": ["/srv/files"], "max_size_bytes": 1}},
    {"config": {"min_chars": 1, "max_chars": 100, "blocked_keywords": ["x"], "required_keywords": ["y"]}},
    {"config": {"logic": "or", "predicates": [{"pattern": "a"}, {"max_tokens": 5}]}},
    {"provider": "custom", "check": "pii", "config": {"on_fail": "fix"}},
    {"provider": "guardrails_ai", "check": "topic", "config": {"topics": ["medical"]}},
    {"provider": "llm", "config": {"policy": "Is it kind?", "seconds": 3, "model": "openai:gpt-4o"}},
    {"provider": "script", "check": "v.py", "config": {"args_from_env": ["CUSTOMER_NAME"]}},
    {"provider": "script", "check_command": "python3 -V"},
    {"on": "on_tool_call", "type": "approval_always", "config": {"tools": ["refund"]}},
]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("check", {"provider": "custom"}),
    ("check", {"provider": "custom", "check": "nobody"}),
    ("check", {"provider": "custom", "check": "pii", "config": {"entity": ["EMAIL"]}}),
    ("check", {"provider": "custom", "check": "pii", "config": {"threshold": 2}}),
    ("check", {"provider": "guardrails_ai", "check": "toxicity2"}),
    ("config", {"type": "regex"}),
    ("config", {"type": "regex", "config": {"patern": "."}}),
    ("config", {"type": "regex", "config": {"pattern": ".", "ignore_case": "yes"}}),
    ("allowed_values", {"type": "string_match"}),
    ("allowed_values", {"type": "string_match", "allowed_values": []}),
    ("auto_approve", {"type": "numeric_range"}),
    ("auto_approve", {"type": "numeric_range", "auto_approve": {"min": 5, "max": 1}}),
    ("auto_approve", {"type": "numeric_range", "auto_approve": {"min": 0, "max": NAN}}),
    ("auto_approve", {"type": "numeric_range", "auto_approve": {"min": -INF, "max": 0}}),
    ("require_approval", {"type": "numeric_range", "require_approval": {"min": 2, "max": 1}}),
    ("block", {"type": "numeric_range", "auto_approve": {"min": 0, "max": 1}, "block": {"outside": (9, 1)}}),
    ("block", {"type": "numeric_range", "auto_approve": {"min": 0, "max": 1}, "block": {"outside": (0, INF)}}),
    ("config", {"type": "numeric_range", "auto_approve": {"min": 0, "max": 1}, "config": {"clamp": "yes"}}),
    ("config", {}),
    ("config", {"config": {"min_chars": -1}}),
    ("config", {"config": {"min_chars": 1.5}}),
    ("config", {"config": {"min_chars": True}}),
    ("config", {"config": {"min_chars": "1"}}),
    ("config", {"config": {"min_chars": 5, "max_chars": 1}}),
    ("config", {"config": {"min_tokens": 5, "max_tokens": 1}}),
    ("config", {"config": {"blocked_keywords": "x"}}),
    ("config", {"config": {"blocked_keywords": []}}),
    ("config", {"config": {"blocked_keywords": [1]}}),
    ("config", {"config": {"required_keywords": [" "]}}),
    ("config", {"config": {"required_keywords": ["x" * 81]}}),
    ("config", {"config": {"blocked_keywords": ["x"] * 101}}),
    ("config", {"config": {"logic": "xor", "predicates": [{"pattern": "a"}]}}),
    ("config", {"config": {"logic": "or"}}),
    ("config", {"config": {"predicates": []}}),
    ("config", {"config": {"predicates": "x"}}),
    ("config", {"config": {"predicates": [{}]}}),
    ("config", {"config": {"predicates": ["x"]}}),
    ("config", {"config": {"predicates": [{"pattern": "a"}] * 9}}),
    ("config", {"config": {"predicates": [{"predicates": [{"predicates": [{"predicates": [{"pattern": "a"}]}]}]}]}}),
    ("config", {"provider": "llm"}),
    ("config", {"provider": "llm", "config": {"policy": " "}}),
    ("config", {"provider": "llm", "config": {"policy": "x" * 2001}}),
    ("config", {"provider": "llm", "config": {"policy": "x", "model": "nobody"}}),
    ("config", {"provider": "llm", "config": {"policy": "x", "seconds": 600}}),
    ("config", {"provider": "llm", "config": {"policy": "x", "temperature": 2}}),
    ("config", {"provider": "script"}),
    ("config", {"provider": "script", "check": "../../etc/passwd"}),
    ("config", {"provider": "script", "check": "/bin/sh"}),
    ("config", {"provider": "script", "check": "v.py", "config": {"args_from_env": ["PATH=x"]}}),
    ("check_command", {"provider": "script", "check_command": "sh -c 'x"}),
    ("config", {"type": "file_valid", "extract": "path"}),
    ("config", {"type": "file_valid", "extract": "path", "config": {"roots": ["../etc"]}}),
    ("extract", {"type": "file_valid", "config": {"roots": ["/srv"]}}),
    ("config", {"type": "approval_always", "config": {"tools": ["refund"]}}),
    ("config", {"type": "regex", "config": {"pattern": "a\0b"}}),
    ("on_block", {"type": "approval_always", "on_block": "\ud800"}),
]


@pytest.mark.parametrize("fields", GOOD)
@pytest.mark.usefixtures("stand_in")
def test_gate_that_can_work_is_accepted(fields: dict[str, Any]) -> None:
    assert problems_of(gate(**fields)) == {}


@pytest.mark.parametrize(("field", "fields"), BAD)
def test_gate_that_cannot_work_is_told_by_field(field: str, fields: dict[str, Any]) -> None:
    assert field in problems_of(gate(**fields))


def test_gate_that_cannot_work_is_not_written(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        write_version(gate(type="numeric_range", auto_approve={"min": 5, "max": 1}))
    assert refused.value.code == "gate_invalid"
    assert refused.value.status == 422


# What an older release or a plan may hold, and what comes of it when it is run.
RUN_ALL_THE_SAME: list[dict[str, Any]] = [
    {},
    {"config": {"predicates": [{}]}},
    {"config": {"predicates": ["x"]}},
    {"config": {"predicates": "x"}},
    {"config": {"min_chars": "1"}},
    {"config": {"blocked_keywords": [1]}},
    {"config": {"predicates": [{"predicates": [{"predicates": [{"predicates": [{"pattern": "h"}]}]}]}]}},
    {"type": "regex"},
    {"type": "string_match"},
    {"type": "numeric_range"},
    {"type": "numeric_range", "auto_approve": {"min": 5, "max": 1}},
    {"type": "numeric_range", "auto_approve": {"min": 0, "max": NAN}},
    {"type": "file_valid", "extract": "path"},
    {"provider": "custom", "check": "nobody"},
    {"provider": "guardrails_ai", "check": "nobody"},
    {"provider": "script", "check_command": "sh -c 'x"},
    {"provider": "llm", "promote_to_policy": True},
]


@pytest.mark.parametrize("fields", RUN_ALL_THE_SAME)
def test_gate_that_cannot_work_blocks_if_it_runs_all_the_same(fields: dict[str, Any]) -> None:
    assert check_gates([gate(**fields)], MESSAGE, {"message": "hello"}).blocked is not None


NESTED = [{"pattern": "((((a{50}){50}){50}){50}){50}"}]
DEEP: dict[str, Any] = {"pattern": "a"}
for _ in range(12):
    DEEP = {"predicates": [DEEP]}


@pytest.mark.parametrize(
    "config", [{"predicates": NESTED}, {"predicates": [{"predicates": NESTED}]}, {"predicates": [{"pattern": "("}]}]
)
def test_pattern_inside_a_predicate_is_looked_at_before_it_is_compiled(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"pattern is too large|not a regular expression"):
        gate(config=config)


@pytest.mark.parametrize("config", [DEEP, {"predicates": [{"pattern": "a"}] * 17}])
def test_nest_of_predicates_is_bounded(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"too deeply|more than 16"):
        gate(config=config)


EVIL = [r"(x+x+)+y", r"^(a+)+$", r"(a|aa)+$", r"(.*)*\d"]


@pytest.mark.parametrize("config", [{"pattern": each} for each in EVIL] + [{"predicates": [{"pattern": EVIL[0]}]}])
def test_pattern_that_takes_for_ever_blocks(config: dict[str, Any]) -> None:
    report = check_gates([gate(config=config)], MESSAGE, {"message": "ax" * 20_000 + "!"})
    assert report.blocked is not None


@pytest.mark.parametrize(
    "config",
    [
        {"predicates": [{"pattern": "a"}, {"pattern": "a"}]},
        {"predicates": [{"blocked_keywords": ["x"]}, {"predicates": [{"blocked_keywords": ["x"]}]}]},
    ],
)
def test_patterns_and_words_of_a_gate_have_its_time_together(config: dict[str, Any]) -> None:
    begun, first, second = 0.0, 0.2, 0.4
    with pytest.raises(TimeoutError):
        judge(gate(config=config), "a", clock=iter((begun, first, second)).__next__)


def test_config_that_is_nested_without_end_is_refused_and_does_not_fail() -> None:
    nested: Any = "a"
    for _ in range(400):
        nested = [nested]
    assert "config" in problems_of(gate(provider="custom", check="pii", config={"entities": nested}))


@pytest.mark.parametrize("value", ["", "abc", None, NAN, "nan", "inf", True, [], "1e999"])
def test_value_that_is_no_number_blocks(value: Any) -> None:
    limit = gate(type="numeric_range", on="on_tool_call", extract="amount", auto_approve={"min": 0, "max": 10})
    assert check_gates([limit], "on_tool_call", {"tool_args": {"amount": value}}).blocked is not None


WORDS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"min_chars": 3}, "ab", "block", "too_short"),
    ({"min_chars": 3}, "abc", "continue", "passed"),
    ({"max_chars": 3}, "abcd", "block", "too_long"),
    ({"max_tokens": 1}, "a long enough text", "block", "too_long"),
    ({"min_tokens": 3}, "ab", "block", "too_short"),
    ({"blocked_keywords": ["refund"]}, "A REFUND, please", "block", "keyword_found"),
    ({"blocked_keywords": ["refund"]}, "refunding", "continue", "passed"),
    ({"blocked_keywords": ["refund"], "case_sensitive": True}, "REFUND", "continue", "passed"),
    ({"blocked_keywords": ["c++ (old)"]}, "I like C++ (old).", "block", "keyword_found"),
    ({"required_keywords": ["kind", "regards"]}, "kind of", "require_approval", "keyword_missing"),
    ({"required_keywords": ["kind", "regards"]}, "Kind Regards", "continue", "passed"),
    ({"required_keywords": ["x"], "blocked_keywords": ["y"]}, "y", "block", "keyword_found"),
    ({"pattern": "^b", "multiline": True}, "a\nb", "continue", "passed"),
    ({"pattern": "^b"}, "a\nb", "block", "no_match"),
    ({"pattern": "A"}, "a", "block", "no_match"),
    ({"pattern": "A", "ignore_case": True}, "a", "continue", "passed"),
    ({"pattern": "A", "case_sensitive": False}, "a", "continue", "passed"),
    ({"predicates": [{"pattern": "a"}, {"pattern": "b"}]}, "a", "block", "no_match"),
    ({"predicates": [{"pattern": "a"}, {"pattern": "b"}], "logic": "and"}, "ab", "continue", "passed"),
    ({"predicates": [{"pattern": "a"}, {"pattern": "b"}], "logic": "or"}, "b", "continue", "passed"),
    ({"predicates": [{"pattern": "a"}, {"pattern": "b"}], "logic": "or"}, "c", "block", "no_match"),
    ({"predicates": [{"pattern": "a"}, {"required_keywords": ["b"]}], "logic": "or"}, "c", "require_approval", ""),
    ({"max_chars": 2, "predicates": [{"pattern": "a"}], "logic": "or"}, "aaa", "block", "too_long"),
    ({"predicates": [{"logic": "or", "predicates": [{"pattern": "x"}, {"max_chars": 5}]}]}, "abc", "continue", ""),
]


@pytest.mark.parametrize(("config", "text", "action", "code"), WORDS)
def test_predicate_says_what_its_config_asks(config: dict[str, Any], text: str, action: str, code: str) -> None:
    answer = judge(gate(config=config), text)
    assert answer.action == action
    assert code in ("", answer.code)


def test_config_of_a_typed_gate_is_asked_as_well() -> None:
    typed = gate(type="string_match", allowed_values=["a long value"], config={"max_chars": 3})
    assert judge(typed, "a long value").code == "too_long"


def test_config_is_asked_about_the_rewritten_text() -> None:
    redacts = gate(type="regex", config={"redact": "secret", "with": "x", "blocked_keywords": ["secret"]})
    answer = judge(redacts, "my secret")
    assert answer.action == "continue"
    assert answer.changed == "my x"


@pytest.mark.parametrize("value", [None, 7, [], "x" * 50_001])
def test_text_that_cannot_be_read_whole_blocks(value: Any) -> None:
    assert judge(gate(config={"max_chars": 10**6}), value).action == "block"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["pattern", "redact", "min_chars", "max_tokens", "blocked_keywords", "predicates", "logic", "tools", "policy"]


@given(
    config=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    kind=st.sampled_from(["regex", "custom_check", "string_match", "numeric_range", "file_valid"]),
    provider=st.sampled_from(["predicate", "custom", "script", "llm"]),
)
def test_whatever_a_config_holds_is_told_and_never_thrown(config: dict[str, Any], kind: str, provider: str) -> None:
    try:
        strange = gate(type=kind, provider=provider, config=config)
    except ValueError:
        return
    assert isinstance(problems_of(strange), dict)


@given(config=st.dictionaries(st.sampled_from(KEYS[:-1]), JSON, max_size=4), text=st.text(max_size=40))
def test_whatever_a_config_holds_the_runner_answers(config: dict[str, Any], text: str) -> None:
    try:
        strange = gate(config=config)
    except ValueError:
        return
    (result,) = check_gates([strange], MESSAGE, {"message": text}).policy
    assert result.action in ("continue", "block", "require_approval")

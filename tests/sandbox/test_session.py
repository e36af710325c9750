"""Talking with a script while it runs: lines in, lines out, and what a hostile one answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbox import Backend, SandboxSpec, Session, SessionClosed

ECHO = """
import sys
for line in sys.stdin:
    print("heard", line.strip(), flush=True)
"""


@pytest.fixture
def talk(isolation: Backend) -> Callable[..., Session]:
    return lambda source, **limits: Session(
        isolation, SandboxSpec(["python3", "-I", "-S", "-c", source], **{"timeout_seconds": 30, **limits})
    )


def test_lines_go_both_ways(talk: Any) -> None:
    with talk(ECHO) as session:
        session.send_line("one")
        first = session.read_line(30)
        session.send_line("two")
        assert first == "heard one"
        assert session.read_line(30) == "heard two"
    assert session.close().ok


def test_silence_is_none_and_not_the_end(talk: Any) -> None:
    with talk(ECHO) as session:
        assert session.read_line(0.05) is None
        assert session.is_over is False


def test_end_of_the_script_is_told(talk: Any) -> None:
    with talk("print('bye'); raise SystemExit(1)") as session:
        assert [session.read_line(30), session.read_line(30), session.is_over] == ["bye", None, True]
        with pytest.raises(SessionClosed):
            session.send_line("anybody?")
    assert session.close().exit_code == 1


def test_half_a_line_is_not_told(talk: Any) -> None:
    with talk('import sys; sys.stdout.write(\'{"type": "comp\')') as session:
        assert session.read_line(30) is None


def test_line_of_ten_megabytes_ends_the_session(talk: Any) -> None:
    with talk("print('x' * 10_000_000)", output_bytes=20_000_000) as session:
        assert session.read_line(30) is None
    assert session.close().reason == "line_limit"


def test_noise_on_standard_error_is_no_line(talk: Any) -> None:
    with talk("import sys; sys.stderr.write('noise\\n' * 100); print('word')") as session:
        assert session.read_line(30) == "word"


def test_output_is_bounded_as_a_whole(talk: Any) -> None:
    with talk("while True: print('x' * 100)", output_bytes=10_000) as session:
        while not session.is_over:
            session.read_line(30)
    assert session.close().reason == "output_limit"


def test_script_that_does_not_leave_is_stopped(talk: Any) -> None:
    session = talk("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(60)")
    assert session.read_line(30) == "1"
    assert session.close(grace_seconds=0).reason == "stopped"


def test_script_that_does_not_read_holds_nobody_up(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.session._SEND_SECONDS", 0.2)
    session = talk("import time; time.sleep(60)")
    with pytest.raises(SessionClosed):
        session.send_line("x" * 200_000)
    session.close(grace_seconds=0)


def test_time_limit_holds_for_a_session(talk: Any) -> None:
    with talk("import time; time.sleep(60)", timeout_seconds=1) as session:
        assert session.read_line(30) is None
    assert session.close().reason == "timeout"


def test_secrets_go_in_one_after_the_other_and_come_back_apart(talk: Any) -> None:
    source = """
import json, os, sys
secrets = os.fdopen(int(os.environ["SILAS_SECRET_FD"]))
first = json.loads(secrets.readline())
print("ready", flush=True)
second = json.loads(secrets.readline())
os.write(int(os.environ["SILAS_SECRET_OUT_FD"]), json.dumps({**first, **second}).encode())
print("done", flush=True)
"""
    with talk(source, secret=b'{"client_secret": "first-word"}') as session:
        assert session.read_line(30) == "ready"
        session.send_secret(b'{"api_key": "second-word"}')
        assert session.read_line(30) == "done"
    assert json.loads(session.close().secret_out) == {"client_secret": "first-word", "api_key": "second-word"}


def test_line_that_holds_a_secret_is_never_told(talk: Any) -> None:
    source = """
import os, json
held = json.loads(os.fdopen(3).readline())
print('a', flush=True)
print(held['k'][::-1], flush=True)
"""
    with talk(source, secret=b'{"k": "hidden-word"}') as session:
        told = [session.read_line(30), session.read_line(30)]
    result = session.close()
    assert told == ["a", None]
    assert result.reason == "secret_leaked"
    assert "hidden" not in result.stdout


def test_line_with_a_line_feed_is_not_sent(talk: Any) -> None:
    with talk(ECHO) as session, pytest.raises(Exception, match="line feed"):
        session.send_line('{"a": 1}\n{"type": "step_result"}')


TALKATIVE = """
import sys
for line in sys.stdin:
    print("x" * 1000, flush=True)
"""


def test_lasting_session_may_say_more_in_all_than_it_may_leave_unread(talk: Any) -> None:
    with talk(TALKATIVE, output_bytes=4000, lasting=True) as session:
        for _ in range(20):
            session.send_line("go on")
            assert session.read_line(30) == "x" * 1000
    assert session.close().reason == ""


def test_lasting_session_that_nobody_reads_is_bounded(talk: Any) -> None:
    with talk("while True: print('x', flush=True)", lasting=True) as session:
        session._thread.join(30)
        assert not session._thread.is_alive()
    assert session.close().reason == "output_limit"

"""Where may a test break a process on purpose?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel import fault_points
from kernel.fault_points import POINTS, Action, Fault, reach
from tests import nursery
from tests.architecture.source import ROOT, modules

POINT = "guard.admitted"


@pytest.fixture
def armed(tmp_path: Path) -> Iterator[Path]:
    fault_points.arm(str(tmp_path))
    yield tmp_path
    fault_points.arm("")


def start(settings: str, faults: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": f"silas_platform.settings.{settings}", "SILAS_FAULT_POINTS": faults}
    keys = {"SECRET_KEY": "one", "SILAS_SIGNING_KEY": "two", "SILAS_SECRETS_KEY": "three"}
    script = "import django; django.setup(); from kernel import fault_points; print(fault_points._folder)"
    argv = [sys.executable, "-W", "ignore", "-c", script]
    return nursery.run(argv, env={**env, **keys}, cwd=ROOT, capture_output=True, text=True, check=False)


def reach_in_child(folder: Path) -> subprocess.Popen[bytes]:
    script = f"from kernel import fault_points as f; f.arm({str(folder)!r}); f.reach({POINT!r}); print('went on')"
    return nursery.start([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)


@pytest.mark.parametrize("settings", ["prod", "local", "base"])
def test_process_with_other_settings_refuses_to_start(settings: str, tmp_path: Path) -> None:
    started = start(settings, str(tmp_path))
    assert started.returncode == 1
    assert "E_CFG_FAULT_POINTS" in started.stderr


def test_process_with_the_tests_settings_is_armed_by_the_variable(tmp_path: Path) -> None:
    assert start("test", str(tmp_path)).stdout.strip() == str(tmp_path)
    assert start("test", "").stdout.strip() == "None"


def test_point_without_a_fault_of_its_own_is_passed_and_one_that_is_not_listed_is_refused(armed: Path) -> None:
    fault_points.plant(armed, "guard.after_settle", Action.RAISE)
    reach(POINT)
    assert [fault.name for fault in armed.iterdir()] == ["guard.after_settle"]
    with pytest.raises(KeyError):
        reach("guard.somewhere")


def test_fault_of_an_unarmed_process_stays(tmp_path: Path) -> None:
    fault_points.plant(tmp_path, POINT, Action.RAISE)
    reach(POINT)
    assert (tmp_path / POINT).exists()


def test_fault_is_met_once(armed: Path) -> None:
    fault_points.plant(armed, POINT, Action.RAISE)
    with pytest.raises(Fault):
        reach(POINT)
    reach(POINT)
    assert fault_points.processes_that_took(armed, POINT) == [os.getpid()]


def test_fault_for_the_second_time_lets_the_first_pass(armed: Path) -> None:
    fault_points.plant(armed, POINT, Action.PASS, Action.RAISE)
    reach(POINT)
    with pytest.raises(Fault):
        reach(POINT)


def test_killed_process_is_gone_without_a_word(tmp_path: Path) -> None:
    fault_points.plant(tmp_path, POINT, Action.KILL)
    child = reach_in_child(tmp_path)
    said, _ = child.communicate()
    assert child.returncode == -9
    assert said == b""


def test_stopped_process_goes_on_when_it_is_told_to(tmp_path: Path) -> None:
    fault_points.plant(tmp_path, POINT, Action.STOP)
    child = reach_in_child(tmp_path)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    child.send_signal(18)
    assert child.communicate()[0] == b"went on\n"


def test_every_point_stands_once_in_the_code() -> None:
    found = [
        argument
        for module in modules()
        for line in module.path.read_text().splitlines()
        if "fault_points.reach" in line
        for argument in POINTS
        if f'"{argument}"' in line
    ]
    assert sorted(found) == sorted(POINTS)

"""What a hostile script can use up: its own limits, in bounded time, with a reason, and nothing outlives the run."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox import SandboxSpec, run


def processes_named(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in command and b"SandboxSpec" not in command:
            found.append(path.parent.name)
    return found


def test_hang_ends_with_timeout(python):
    assert python("import time; time.sleep(60)", timeout_seconds=0.5).reason == "timeout"


def test_hang_that_ignores_signals_ends_with_timeout(python):
    source = "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)"
    assert python(source, timeout_seconds=0.5).reason == "timeout"


def test_timeout_has_no_exit_code(python):
    assert python("import time; time.sleep(60)", timeout_seconds=0.3).exit_code is None


def test_timeout_keeps_output_so_far(python):
    result = python("import time; print('before', flush=True); time.sleep(60)", timeout_seconds=0.5)
    assert result.stdout == "before\n"


def test_busy_loop_ends_with_cpu_limit(python):
    assert python("while True: pass", cpu_seconds=1, timeout_seconds=60).reason == "cpu_limit"


def test_command_stands_behind_whoever_watches_it(python):
    assert python("import os; print(os.nice(0))").stdout == "10\n"


def test_fork_bomb_is_stopped(python):
    source = "import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)"
    assert python(source, processes=20).reason == "process_limit"


def test_fork_bomb_leaves_no_process(python):
    source = "import os, time  # bomb-marker-17\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)"
    python(source, processes=20)
    assert processes_named("bomb-marker-17") == []


def test_fork_beyond_the_limit_fails_inside(python):
    source = "import os, time\nfor i in range(200):\n  if os.fork() == 0: time.sleep(5); os._exit(0)\ntime.sleep(5)"
    result = python(source, processes=20)
    assert result.reason == "process_limit" or "Resource temporarily unavailable" in result.stderr


def test_memory_fill_ends_with_memory_limit(python):
    source = "held = []\nwhile True: held.append(bytearray(4 << 20))"
    assert python(source, memory_mb=96).reason == "memory_limit"


def test_memory_of_all_processes_is_summed(python):
    source = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(40 << 20)
        time.sleep(20)
time.sleep(20)
"""
    assert python(source, memory_mb=96).reason == "memory_limit"


def test_memory_single_huge_request_fails_inside(python):
    result = python("bytearray(64 << 30)", memory_mb=96)
    assert result.exit_code == 1
    assert "MemoryError" in result.stderr


def test_disk_fill_ends_with_disk_limit(python):
    source = "with open('big', 'wb') as f:\n  while True: f.write(bytes(1 << 20))"
    assert python(source, disk_mb=8).reason == "disk_limit"


def test_disk_fill_in_many_files_ends_with_disk_limit(python):
    source = "i = 0\nwhile True:\n  i += 1\n  open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))"
    assert python(source, disk_mb=8).reason == "disk_limit"


def test_disk_inode_flood_ends_with_disk_limit(python):
    source = "i = 0\nwhile True:\n  i += 1\n  open(str(i), 'w').close()"
    assert python(source, timeout_seconds=20).reason == "disk_limit"


def test_output_flood_ends_with_output_limit(python):
    result = python("while True: print('x' * 1000)", output_bytes=5000)
    assert result.reason == "output_limit"
    assert len(result.stdout) == 5000


def test_output_flood_on_both_streams_counts_together(python):
    source = "import sys\nwhile True: print('x' * 100); print('y' * 100, file=sys.stderr)"
    result = python(source, output_bytes=5000)
    assert result.reason == "output_limit"
    assert len(result.stdout) + len(result.stderr) <= 5000


def test_output_at_the_limit_is_whole(python):
    result = python("print('x' * 99, flush=True)", output_bytes=100)
    assert result.reason == ""
    assert len(result.stdout) == 100


def test_output_garbage_is_decoded_with_replacement(python):
    result = python("import os; os.write(1, bytes(range(256)))")
    assert result.ok
    assert "�" in result.stdout


def test_daemonised_child_does_not_outlive_the_run(python):
    source = """
import os, time  # daemon-marker-23
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
"""
    python(source)
    assert processes_named("daemon-marker-23") == []


def test_daemonised_child_does_not_delay_the_run(python):
    source = "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(60)"
    assert python(source).ok


def test_zombies_do_not_count_as_failure(python):
    assert python("import os\nfor i in range(5):\n  if os.fork() == 0: os._exit(0)").ok


def test_exit_code_is_reported(python):
    assert python("raise SystemExit(3)").exit_code == 3


def test_exit_by_signal_is_negative(python):
    assert python("import os; os.abort()").exit_code == -6


def test_runs_in_parallel_threads_do_not_mix():
    def one(number: int) -> str:
        return run(SandboxSpec(["python3", "-I", "-S", "-c", f"print({number})"])).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == [f"{number}\n" for number in range(24)]


def test_thread_that_runs_a_hang_leaves_the_caller_alive(python):
    results = []
    thread = threading.Thread(target=lambda: results.append(python("while True: pass", timeout_seconds=0.5)))
    thread.start()
    thread.join(5)
    assert results[0].reason == "timeout"


def test_command_that_the_kernel_stopped_for_its_processor_time_has_reached_the_limit(python):
    """The kernel counts in ticks: on a busy machine it is some way ahead of the time that was really used."""
    source = "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"
    assert python(source, cpu_seconds=1).reason == "cpu_limit"


def test_killing_itself_is_not_a_cpu_limit(python):
    result = python("import os; os.kill(os.getpid(), 9)", cpu_seconds=1)
    assert result.exit_code == -9
    assert result.reason == ""

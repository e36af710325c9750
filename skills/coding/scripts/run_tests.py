"""Run the tests among the files of the work, on a copy of them, and tell what came of it."""

import re
import shutil
import subprocess
import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from work import INPUTS, ROOT, answer, read_args, refuse

args = read_args()
if not INPUTS.is_dir():
    refuse("This work has no files to test.")
place = ROOT / "work/files"
shutil.copytree(INPUTS, place)
folder = place / args.get("folder", ".")
if not folder.is_dir():
    refuse("There is no such folder among the files of this work.")
command = [sys.executable, "-S", "-m", "unittest", "discover", "-s", str(folder), "-t", str(place), "-v"]
if "only" in args:
    command += ["-k", args["only"]]
try:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, errors="replace", timeout=50)
except subprocess.TimeoutExpired:
    refuse("The tests took longer than 50 seconds.")

ran = re.search(r"^Ran (\d+) tests?", done.stderr, re.M)
count = int(ran[1]) if ran else 0
failed = re.findall(r"^(?:FAIL|ERROR): (.+)$", done.stderr, re.M)
passed = done.returncode == 0 and count > 0
if count == 0:
    say = "No test was found."
elif passed:
    say = f"{count} test{'s' if count != 1 else ''} passed."
else:
    say = f"{len(failed)} of {count} tests failed."
answer(say=say, passed=passed, count=count, failed=failed[:50], output=done.stderr[-8000:])

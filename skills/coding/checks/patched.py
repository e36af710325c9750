"""Prints `patched` when every line that a patch adds stands, in its order, in the file that was left as a result."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/sandbox/skill/scripts")
from patches import read_patch

ROOT = Path("/sandbox")


def holds(text, block):
    lines = text.splitlines()
    return any(lines[at : at + len(block)] == block for at in range(len(lines) - len(block) + 1))


def is_patched(path, hunks):
    result = ROOT / "artifacts" / path
    if not result.is_file():
        return False
    text = result.read_text()
    return all(holds(text, [line[1:] for line in lines if line[0] != "-"]) for _, lines in hunks)


calls = [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == "apply_patch"]
files = [(path, hunks) for args in calls for path, _, _, hunks in read_patch(args["patch"])]
print("patched" if files and all(is_patched(path, hunks) for path, hunks in files) else "not patched")

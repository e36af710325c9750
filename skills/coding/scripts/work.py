"""What every script of this skill does: read its call and the files of the work, answer once."""

import json
import sys
from pathlib import Path

ROOT = Path("/sandbox")
INPUTS = ROOT / "inputs"


def read_args():
    return json.loads((ROOT / "work/call.json").read_text())["args"]


def answer(**value):
    print(json.dumps(value))
    sys.exit(0)


def refuse(sentence):
    answer(refused=sentence)

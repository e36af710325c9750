"""What both scripts do: read the call, answer once."""

import json
import sys
from pathlib import Path

ROOT = Path("/sandbox")


def read_args():
    return json.loads((ROOT / "work/call.json").read_text())["args"]


def answer(**value):
    print(json.dumps(value))
    sys.exit(0)


def refuse(sentence):
    answer(refused=sentence)

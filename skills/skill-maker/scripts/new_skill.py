"""Lay out a new skill: front matter with one reading tool, its script, a test and example inputs.

The tool says that nobody has written yet what it does; whoever goes on from here replaces that.
"""

import json
import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from call import answer, read_args

SKILL = """---
name: {name}
description: {description}
activation: auto
metadata:
  version: "1"
  tools:
    - name: {tool}
      script: scripts/{tool}.py
      description: {title}
      args:
        type: object
        properties:
          question: {{type: string, maxLength: 500, title: what is wanted}}
{records}---

# {title}

## When to use
{wish}

## Scripts
- `scripts/{tool}.py` answers that nobody has written yet what it does.

## Constraints
- It reads and changes nothing.
"""
SCRIPT = '''"""{title}: a script with nothing in it yet. It reads its call and answers once."""

import json
from pathlib import Path

call = json.loads(Path("/sandbox/work/call.json").read_text())
{read}print(json.dumps({{"refused": "Nobody has written yet what this does."}}))
'''
READ = """rows = json.loads(Path("/sandbox/records/{book}.json").read_text())
mine = [row for row in rows if row["subject"] == call["customer"]]
"""
TEST = '''"""The script answers once, in JSON."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = "/sandbox/skill/scripts/{tool}.py"


def ask(**args):
    call = {{"tool": "{tool}", "args": args, "customer": "C-1", "effect_key": "test", "now": "2026-01-01T00:00:00Z"}}
    Path("/sandbox/work/call.json").write_text(json.dumps(call))
    done = subprocess.run([sys.executable, "-I", "-S", SCRIPT], capture_output=True, text=True, timeout=10)
    return json.loads(done.stdout)


class Answers(unittest.TestCase):
    def test_answers_with_one_object(self):
        self.assertIsInstance(ask(question="hello"), dict)
'''
args = read_args()
book, tool = args.get("book", ""), args.get("tool") or args["name"].replace("-", "_")[:60]
tool = tool if tool[0].isalpha() else f"do_{tool}"[:60]
wish = " ".join(args["description"].split())
title = args["name"].replace("-", " ").capitalize()
records = f"      records: [{book}]\n" if book else ""
row = {"key": "K-1", "subject": "C-1", "revision": 1, "data": {}}
examples = {"customer": "C-1", "records": {book: [row]} if book else {}, "calls": [{"tool": tool, "args": {}}]}
files = {
    "SKILL.md": SKILL.format(
        name=args["name"], description=json.dumps(wish), tool=tool, title=title, wish=wish, records=records
    ),
    f"scripts/{tool}.py": SCRIPT.format(title=title, read=READ.format(book=book) if book else ""),
    f"tests/test_{tool}.py": TEST.format(tool=tool),
    "assets/examples.json": json.dumps(examples, indent=2) + "\n",
}
answer(say=f"{len(files)} files of the skill {args['name']} are laid out. Nothing is installed.", files=files)

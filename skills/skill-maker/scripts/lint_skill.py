"""Look over the files of a skill. What is found here would be refused later; what is not found may still be.

The files are the call's `files`, or those that the work starts with.
"""

import ast
import re
import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from call import ROOT, answer, read_args, refuse

INPUTS = ROOT / "inputs"
NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
FORBIDDEN = {"eval", "exec", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
STEPS = re.compile(r"(?i)\b(?:first|then|next|after that|finally|step \d)\b")
CREDENTIAL = re.compile(
    r"""(?ix) -----BEGIN [ A-Z]* PRIVATE\ KEY-----
        | (?:password|passwd|api_?key|secret|token)\s*[:=]\s*["'][^"'\s]{8,}["']"""
)


def inputs():
    if not INPUTS.is_dir():
        return {}
    found = (file for file in INPUTS.rglob("*") if file.is_file())
    return {file.relative_to(INPUTS).as_posix(): file.read_text(errors="replace") for file in found}


def front_of(text):
    """The simple values of the front matter; what is nested is for the platform to read."""
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        return None
    head = lines[1 : lines.index("---", 1)]
    return {
        key: value.strip().strip("\"'") for key, _, value in (line.partition(":") for line in head if line[:1] != " ")
    }


def manifest_problems(text):
    front = front_of(text)
    if front is None:
        return ["SKILL.md: there is no front matter"]
    name, description, found = front.get("name", ""), front.get("description", ""), []
    if not NAME.match(name) or len(name) > 64:
        found.append("SKILL.md: the name is lower case letters, digits and single hyphens, at most 64")
    if not 24 <= len(description) <= 1024:
        found.append("SKILL.md: the description has 24 to 1024 characters")
    if len(STEPS.findall(description)) > 1:
        found.append("SKILL.md: the description says when to use the skill, not how it works")
    return found


def script_problems(path, text):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"{path}: line {error.lineno} is no Python"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [f"{path}: {ast.unparse(call.func)} is not used" for call in calls if ast.unparse(call.func) in FORBIDDEN]
    shells = [each for call in calls for each in call.keywords if each.arg == "shell"]
    return found + [
        f"{path}: no shell" for each in shells if not (isinstance(each.value, ast.Constant) and not each.value.value)
    ]


files = read_args().get("files") or inputs()
if not files:
    refuse("There are no files to look over.")
problems = manifest_problems(files["SKILL.md"]) if "SKILL.md" in files else ["there is no SKILL.md"]
for path, text in sorted(files.items()):
    if path.endswith(".py"):
        problems += script_problems(path, text)
    if CREDENTIAL.search(text):
        problems.append(f"{path}: holds something like a credential")
if not any(path.startswith("tests/") for path in files):
    problems.append("there are no tests")
say = "Nothing is wrong with it at first sight." if not problems else f"{len(problems)} things are wrong."
answer(say=say, problems=problems[:50])

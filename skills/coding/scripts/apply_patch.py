"""Apply a patch to files of the work: all of it, or nothing. The changed files are left as results."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from patches import BadPatch, patched, read_patch
from work import INPUTS, ROOT, answer, read_args, refuse


def before(path, is_new):
    file = INPUTS / path
    if is_new:
        if file.exists():
            raise BadPatch(f"{path} is there already.")
        return ""
    if not file.is_file():
        raise BadPatch(f"There is no file {path} among the files of this work.")
    try:
        return file.read_text()
    except UnicodeDecodeError:
        raise BadPatch(f"{path} is not a text.") from None


try:
    files = read_patch(read_args()["patch"])
    after = {path: patched(before(path, is_new), hunks) for path, is_new, _, hunks in files}
except BadPatch as problem:
    refuse(str(problem))
for path, text in after.items():
    result = ROOT / "out" / path
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(text)
answer(say=f"The patch fits: {len(after)} file{'s' if len(after) != 1 else ''} changed.", files=sorted(after))

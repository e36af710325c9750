"""Tell which files a patch changes, and by how many lines."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from patches import BadPatch, read_patch
from work import answer, read_args, refuse

try:
    files = read_patch(read_args()["patch"])
except BadPatch as problem:
    refuse(str(problem))


def count(hunks, mark):
    return sum(line.startswith(mark) for _, lines in hunks for line in lines)


told = [
    {
        "file": path,
        "change": "new" if is_new else "removed" if is_gone else "changed",
        "added": count(hunks, "+"),
        "removed": count(hunks, "-"),
    }
    for path, is_new, is_gone, hunks in files
]
added, removed = sum(one["added"] for one in told), sum(one["removed"] for one in told)
say = f"{len(told)} file{'s' if len(told) != 1 else ''} changed, {added} lines added, {removed} removed."
answer(say=say, files=told, added=added, removed=removed)

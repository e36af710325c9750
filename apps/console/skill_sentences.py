"""In which words is what happens to skills told? Part of `sentences`."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str, str]] = {
    "skill_installed": ("", "A skill was installed", "{what}"),
    "skill_proposed": ("ask", "{who} proposed a skill", "{what}; it waits for a yes"),
    "skill_withdrawn": ("", "A proposed skill came to nothing", "{what}: {reason}"),
    "skill_disabled": ("", "{who} switched a skill off", "{what}"),
    "skill_rolled_back": ("", "{who} took up an earlier version of a skill", "{what}"),
    "skill_purged": ("", "{who} let go what a skill had written", "{what}"),
    "skill_exported": ("", "{who} handed a skill on", "{what}, version {number}, as a signed package"),
    "skill_package_came": ("", "{who} handed in a package of a skill", "{what}"),
    "skill_package_refused": ("", "{who} threw a package of a skill away", "{what}"),
    "publisher_trusted": ("", "{who} pinned a publisher's key", "the one that signed the package of {what}"),
    "publisher_distrusted": ("", "{who} pins a publisher's key no longer", ""),
    "skill_draft_written": ("", "{who} had a draft of a skill written", "{what}, draft {revision}"),
    "skill_draft_tried": ("", "{who} ran the tests of a draft", "{what}, draft {revision}: {tests} tests"),
    "skill_draft_deleted": ("", "{who} deleted a draft of a skill", ""),
}

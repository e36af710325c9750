"""In which words is what happens to skills and outside tools told? Part of `sentences`."""

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
    "tool_server_added": ("", "{who} registered {what}", "none of its tools is in use yet"),
    "tool_server_changed": ("", "{who} changed {what}", ""),
    "tool_server_listed": ("", "{what} said which tools it has", "{listed} in all, {new} new, {suspended} stopped"),
    "tool_server_failed": ("bad", "{what} could not be asked", ""),
    "tool_server_removed": ("bad", "{who} removed {what}", "none of its tools is in use any more"),
    "outside_tool_accepted": ("", "{who} took {what} into use", "as it is described now"),
    "outside_tool_suspended": ("bad", "{what} was stopped", "until somebody looks at it"),
    "web_search_set": ("", "{who} set up searching the web", ""),
    "web_search_removed": ("", "{who} switched searching the web off", ""),
}

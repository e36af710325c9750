"""NOTICE lists what an installation is made of, and nothing in it forbids how the platform is given away."""

from __future__ import annotations

from tools import make_notice

# Licences that ask for more than the platform's own does of whoever passes the whole on.
FORBIDDEN = ("AGPL", "GNU General Public", "GPL-2", "GPL-3", "SSPL", "Commons Clause", "Proprietary", "not stated")
# The database driver: used as a library, replaceable, its text shipped with its wheel.
ALLOWED = ("LGPL-3.0-only",)


def test_notice_is_up_to_date() -> None:
    assert make_notice.NOTICE.read_text() == make_notice.notice()


def test_every_licence_allows_passing_the_platform_on() -> None:
    licences = {name: make_notice.license_of(name) for name, _ in make_notice.pinned_here()}
    wrong = {
        name: licence
        for name, licence in licences.items()
        if licence not in ALLOWED and any(word in licence for word in FORBIDDEN)
    }
    assert wrong == {}


def test_licence_of_the_platform_is_whole() -> None:
    text = (make_notice.ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text

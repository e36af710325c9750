"""Git reaches the named repository and nothing else, in the private network or on this machine. In the real sandbox,
against git's own server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.skills import imports
from apps.skills.imports import repository
from kernel.errors import SilasError
from sandbox import Choice, configure
from tests.services import repositories
from tests.services.repositories import Repositories, commit, git

SKILL = {"SKILL.md": "---\nname: text-tools\n---\n\n# Text\n", "scripts/count.py": "print(1)\n"}


@pytest.fixture
def server(tmp_path: Path, settings: Any) -> Iterator[Repositories]:
    """A server in the private network, where the operator has allowed this one place."""
    with repositories.serving(tmp_path) as found:
        settings.SKILL_GIT_SCHEMES = ("https", "http")
        settings.EGRESS_PRIVATE = [found.place]
        configure(Choice(egress_private=(found.place,)))
        yield found
        configure(Choice())


def refusal(url: str, **how: str) -> SilasError:
    with pytest.raises(SilasError) as refused:
        imports.from_git(url, **how)
    assert refused.value.code == "import_refused"
    return refused.value


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a.git",
        "file:///etc",
        "ssh://git@example.com/a",
        "https://user:word@example.com/a",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://[::ffff:10.0.0.1]/a",
        "https://localhost/a",
        "https://169.254.169.254/a",
        "ext::sh -c id",
        "https::ext::sh -c id",
        "--upload-pack=id",
        "https://example.com:no/a",
        "https://example.com/a\n--upload-pack=id",
    ],
)
def test_address_that_is_not_public_https_is_refused(url: str) -> None:
    refusal(url)


@pytest.mark.parametrize("ref", ["--upload-pack=id", "-b", "a b", "a;b", "../a\n", "$(id)"])
def test_branch_that_is_an_option_is_refused(ref: str) -> None:
    assert "branch" in refusal("https://example.com/a", ref=ref).message


def test_repository_is_read_with_its_commit(server: Repositories) -> None:
    server.make("text-tools", {**SKILL, ".gitattributes": "*.py filter=evil\n"})
    fetched = imports.from_git(server.url("text-tools"))
    assert fetched.files["scripts/count.py"] == b"print(1)\n"
    assert len(fetched.commit) == 40
    assert fetched.called == "text-tools"


def test_tag_is_read_and_not_what_came_after_it(server: Repositories) -> None:
    folder = server.make("text-tools", SKILL)
    git(folder, "tag", "v1.0")
    (folder / "scripts/count.py").write_text("print(2)\n")
    commit(folder)
    assert imports.from_git(server.url("text-tools"), ref="v1.0").files["scripts/count.py"] == b"print(1)\n"


def test_repository_with_a_link_is_refused(server: Repositories) -> None:
    folder = server.make("text-tools", SKILL)
    (folder / "scripts/link.py").symlink_to("/etc/passwd")
    commit(folder)
    assert "link" in refusal(server.url("text-tools")).message


def test_place_that_nobody_allowed_is_not_asked(server: Repositories, settings: Any) -> None:
    server.make("text-tools", SKILL)
    settings.EGRESS_PRIVATE = []
    assert "public address" in refusal(server.url("text-tools")).message
    assert server.asked == []


def test_public_name_that_stands_for_an_address_of_the_house_is_not_called(
    server: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name reads as one of the public internet: what it stands for is looked at when it is called."""
    port = int(server.place.rpartition(":")[2])
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    looked_up: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: looked_up.append(host) or inside)
    server.make("text-tools", SKILL)
    refusal(f"http://git.example.com:{port}/text-tools")
    assert set(looked_up) == {"git.example.com"}
    assert server.asked == []


def test_redirect_is_not_followed(server: Repositories, tmp_path: Path) -> None:
    """Not even where git would: the run knows no other place (`protocol.allow` and the list both say no)."""
    with repositories.serving(tmp_path) as other:
        other.make("text-tools", SKILL)
        server.elsewhere = f"http://{other.place}"
        refusal(server.url("text-tools"))
        assert bool(server.asked)
        assert other.asked == []


def test_redirect_that_git_followed_would_be_stopped_by_the_list(
    server: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(repository._SETTINGS, "http.followRedirects", "true")
    with repositories.serving(tmp_path) as other:
        configure(Choice(egress_private=(server.place, other.place)))
        other.make("text-tools", SKILL)
        server.elsewhere = f"http://{other.place}"
        refusal(server.url("text-tools"))
        assert bool(server.asked)
        assert other.asked == []


def test_submodule_is_not_fetched(server: Repositories) -> None:
    server.make("inner", {"secret.txt": "x"})
    folder = server.make("text-tools", SKILL)
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(server.root / "inner"), "inner")
    (folder / ".gitmodules").write_text(f'[submodule "inner"]\n\tpath = inner\n\turl = {server.url("inner")}\n')
    commit(folder)
    fetched = imports.from_git(server.url("text-tools"))
    assert "inner/secret.txt" not in fetched.files
    assert not [path for path in server.asked if "inner" in path]


def test_repository_that_is_too_large_is_given_up(server: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MOST_FETCHED", 200_000)
    server.make("text-tools", {**SKILL, "assets/noise.bin": os.urandom(2_000_000)})
    assert "too large" in refusal(server.url("text-tools")).message


def test_repository_that_swells_is_given_up(server: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of one letter are nothing on the line."""
    monkeypatch.setattr("apps.skills.imports.sources.MAX_UNPACKED_BYTES", 1_000_000)
    server.make("text-tools", {**SKILL, "assets/aaaa.txt": "a" * 2_000_000})
    assert "too large" in refusal(server.url("text-tools")).message


def test_server_that_is_away_is_a_refusal(server: Repositories) -> None:
    assert "couldn't be fetched" in refusal(server.url("nothing-here")).message

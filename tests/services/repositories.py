"""A git server on this machine: git's own back end behind a small web server, which can also send elsewhere."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Repositories:
    """Every folder below `root` is one. `elsewhere`: where the server sends whoever asks for anything."""

    root: Path
    place: str = ""
    elsewhere: str = ""
    asked: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"http://{self.place}/{name}"

    def make(self, name: str, files: dict[str, str | bytes]) -> Path:
        folder = self.root / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        git(folder, "init", "-q")
        commit(folder)
        return folder


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "x")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@contextmanager
def serving(root: Path) -> Iterator[Repositories]:
    found = Repositories(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            if found.elsewhere:
                self.send_response(302)
                self.send_header("Location", found.elsewhere + self.path)
                self.end_headers()
                return
            self._answer(_backend(found.root, self))

        do_POST = do_GET

        def _answer(self, said: bytes) -> None:
            head, _, body = said.partition(b"\r\n\r\n")
            lines = [line.decode().split(": ", 1) for line in head.split(b"\r\n")]
            self.send_response(int(dict(lines).get("Status", "200").split()[0]))
            for name, value in lines:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found.place = f"127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()


def _backend(root: Path, asked: BaseHTTPRequestHandler) -> bytes:
    parts = urlsplit(asked.path)
    env = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "PATH_INFO": parts.path,
        "QUERY_STRING": parts.query,
        "REQUEST_METHOD": asked.command,
        "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
        "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
        "HTTP_GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
    }
    body = _chunked(asked) if asked.headers.get("Transfer-Encoding") else _whole(asked)
    return subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True).stdout


def _whole(asked: BaseHTTPRequestHandler) -> bytes:
    return asked.rfile.read(int(asked.headers.get("Content-Length", "0")))


def _chunked(asked: BaseHTTPRequestHandler) -> bytes:
    body = b""
    while size := int(asked.rfile.readline(), 16):
        body += asked.rfile.read(size)
        asked.rfile.readline()
    asked.rfile.readline()
    return body

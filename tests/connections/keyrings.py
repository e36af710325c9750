"""A keyring in a folder that several processes share. With `kills`, it ends its process once it has stored a value."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class OnDisk(KeyringBackend):
    priority = 1

    def __init__(self, folder: Path, *, kills: bool = False) -> None:
        super().__init__()
        self.folder, self.kills, self.locked = folder, kills, False
        folder.mkdir(exist_ok=True)

    def get_password(self, service: str, username: str) -> str | None:
        place = self._place(username)
        return place.read_text() if place.exists() else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._place(username).write_text(password)
        if self.kills:
            os.kill(os.getpid(), signal.SIGKILL)

    def delete_password(self, service: str, username: str) -> None:
        if not self._place(username).exists():
            raise PasswordDeleteError("not found")
        self._place(username).unlink()

    def held(self) -> int:
        return len(list(self.folder.iterdir()))

    def _place(self, username: str) -> Path:
        if self.locked:
            raise KeyringLocked("locked")
        return self.folder / username

"""Output of many processes on one screen: whole lines, each prefixed with the program's name.

Colours only on a terminal. An unfinished line is shown when its process ends.
"""

import sys
from dataclasses import dataclass, field
from typing import TextIO

_COLOURS = (36, 32, 35, 33, 34)
_WIDTH = 8


@dataclass
class Screen:
    """Writes to the terminal; `closed` once its reader is gone (`| head`, a closed window)."""

    out: TextIO = field(default_factory=lambda: sys.stdout)
    colours: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def say(self, text: str) -> None:
        """Print a line without a name, so that scripts can look for `ready …`."""
        if self.closed:
            return
        try:
            print(text, file=self.out, flush=True)
        except OSError:
            self.closed = True

    def show(self, name: str, text: str) -> None:
        prefix = f"{name:<{_WIDTH}}|"
        if self.out.isatty():
            colour = self.colours.setdefault(name, _COLOURS[len(self.colours) % len(_COLOURS)])
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        self.say(f"{prefix} {text}")


@dataclass
class LineBuffer:
    """Turns the pieces that a pipe delivers into whole lines."""

    rest: bytes = b""

    def feed(self, piece: bytes) -> list[str]:
        *whole, self.rest = (self.rest + piece).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def finish(self) -> list[str]:
        return self.feed(b"\n") if self.rest else []

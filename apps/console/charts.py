"""Column charts as geometry for an inline SVG; the table below each chart has the same numbers.

Pure. Widths and heights are in units of the drawing's viewBox; the page scales it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640.0, 160.0
_FOOT, _HEAD, _SIDE = 22.0, 12.0, 4.0
_MOST_NAMES = 8


@dataclass(frozen=True)
class Bar:
    """A column; `part` is the height of its lower, darker part (such as the declined among the decisions)."""

    x: float
    y: float
    width: float
    height: float
    part: float
    label: str
    value: float
    text: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def label_y(self) -> float:
        return self.y - 3

    @property
    def part_y(self) -> float:
        return self.y + self.height - self.part


@dataclass(frozen=True)
class Columns:
    bars: tuple[Bar, ...]
    top: float
    every: int
    width: float = WIDTH
    height: float = HEIGHT
    foot: float = HEIGHT - _FOOT

    @property
    def name_y(self) -> float:
        return self.height - 6

    @property
    def labelled(self) -> list[Bar]:
        """The bars whose names fit below the axis."""
        return [bar for place, bar in enumerate(self.bars) if place % self.every == 0]


def _number_text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def columns(
    labels: Sequence[str],
    values: Sequence[float],
    parts: Sequence[float] = (),
    *,
    least: float = 1.0,
    text_of: Callable[[float], str] = _number_text,
) -> Columns:
    """Return one column per value, with at most `_MOST_NAMES` names below.

    The axis reaches at least `least`; `text_of` writes a value.
    """
    top = max([*values, least])
    step = (WIDTH - 2 * _SIDE) / max(len(values), 1)
    tall = HEIGHT - _FOOT - _HEAD
    shares = list(parts) or [0.0] * len(values)
    bars = tuple(
        Bar(
            x=round(_SIDE + place * step + step * 0.18, 2),
            y=round(_HEAD + tall * (1 - value / top), 2),
            width=round(step * 0.64, 2),
            height=round(tall * value / top, 2),
            part=round(tall * shares[place] / top, 2),
            label=label,
            value=value,
            text=text_of(value),
        )
        for place, (label, value) in enumerate(zip(labels, values, strict=True))
    )
    return Columns(bars, top, every=max(1, -(-len(values) // _MOST_NAMES)))


def share_width(share: float | None) -> float:
    """Return the width of a bar in percent, between 0 and 100."""
    return round(min(max(share or 0.0, 0.0), 1.0) * 100, 1)

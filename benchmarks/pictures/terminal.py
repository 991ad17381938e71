"""A recorded terminal as one animated SVG: some frames of its live line, then all that it printed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from rich.console import Console
from rich.style import Style
from rich.text import Text

from copter_frontends.report.theme import DARK, LIGHT, Theme
from pictures.recording import WIDTH, Frame

LETTER, LINE, EDGE = 7.83, 17.0, 16.0  # width of a letter, height of a line, margin, in px at 13 px
LIVE = 24
"""Frames of the live line that are shown."""
PLAY_S, REST_S = 12.0, 12.0
"""Seconds in which the run passes, and seconds that its end stays; then it begins again."""

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
GREYS = 232
"""The first grey of the 256 colours of terminals; the greys are the last ones."""
INK = {0: "i0", 1: "i3", 2: "i2", 3: "i1", 4: "i0", 5: "i4", 6: "i2"}
"""The class of each ANSI colour: the theme's series, in its order; all others are the fourth."""
_CONSOLE = Console(width=WIDTH)


def thinned(frames: Sequence[Frame], most: int = LIVE) -> list[Frame]:
    """At most so many frames beside the last, evenly by their place in time; the last one always."""
    if not frames:
        raise ValueError("the recording has printed nothing")
    *live, last = frames
    if len(live) <= most:
        return [*live, last]
    times = np.array([frame.at_s for frame in live])
    wanted = np.linspace(times[0], times[-1], most)
    return [*(live[at] for at in dict.fromkeys(np.abs(times[:, None] - wanted).argmin(axis=0).tolist())), last]


def picture(command: str, frames: Sequence[Frame]) -> str:
    """The SVG of a command and its frames, at most 30 s long; where nothing moves, its end is shown.

    Parameters
    ----------
    command : str
        As it was typed.
    frames : sequence of Frame
    """
    shown = thinned(frames)
    last = _without_ends(shown[-1].lines)
    rows = 2 + max(len(last), *(len(_without_ends(frame.lines)) for frame in shown))
    width, height = 2 * EDGE + LETTER * WIDTH, 2 * EDGE + LINE * rows + 22
    began, took = shown[0].at_s, max(shown[-1].at_s - shown[0].at_s, 1e-9)
    whole = PLAY_S + REST_S
    starts = [PLAY_S * (frame.at_s - began) / took / whole * 100 for frame in shown]
    rules, groups = [], []
    for at, frame in enumerate(shown[:-1]):
        groups.append(f'<g class="f f{at}">{_lines(_without_ends(frame.lines))}</g>')
        end = starts[at + 1]
        rules.append(
            f"@keyframes k{at}{{0%,{max(starts[at] - 0.01, 0):.2f}%{{visibility:hidden}}"
            f"{starts[at]:.2f}%,{end - 0.01:.2f}%{{visibility:visible}}{end:.2f}%,to{{visibility:hidden}}}}"
            f".f{at}{{animation:k{at} {whole:g}s step-end infinite}}"
        )
    rules.append(
        f"@keyframes end{{0%{{visibility:hidden}}{starts[-1]:.2f}%,to{{visibility:visible}}}}"
        f".end{{animation:end {whole:g}s step-end infinite}}"
    )
    bar = "".join(f'<circle class="dot" cx="{EDGE + 4 + 18 * at:g}" cy="18" r="5"/>' for at in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{MONO}" font-size="13">\n'
        f"<style>{_colours()}.f{{visibility:hidden}}"
        f"@media (prefers-reduced-motion:no-preference){{{''.join(rules)}}}</style>\n"
        f'<rect class="paper" x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="9"/>{bar}\n'
        f'<text class="ink" x="{EDGE:g}" y="{EDGE + 36:g}"><tspan class="i0">$ </tspan>{escape(command)}</text>\n'
        + "\n".join(groups)
        + f'\n<g class="end">{_lines(last)}</g>\n</svg>\n'
    )


def _without_ends(lines: Sequence[str]) -> list[str]:
    """The lines without empty ones at the end."""
    found = list(lines)
    while found and not Text.from_ansi(found[-1]).plain.strip():
        found.pop()
    return found


def _lines(lines: Sequence[str]) -> str:
    """A text element a line, below that of the command; letters keep their columns."""
    parts = []
    for row, line in enumerate(lines, 1):
        text = Text.from_ansi(line)
        text.rstrip()
        spans = []
        for segment in text.render(_CONSOLE):
            style, words = segment.style, escape(segment.text.rstrip("\n")).replace(" ", "\u00a0")
            kind = _kind(style)
            given = (f' class="{kind}"' if kind else "") + (' font-weight="700"' if style and style.bold else "")
            spans.append(f"<tspan{given}>{words}</tspan>" if given else words)
        if text.plain.strip():
            y = EDGE + 36 + LINE * row
            plain = len(spans) == 1 and not spans[0].startswith("<")  # else each part of a line would be stretched
            length = f' textLength="{LETTER * len(text.plain):.0f}"' if plain else ""
            parts.append(f'<text class="ink" x="{EDGE:g}" y="{y:g}"{length}>{"".join(spans)}</text>')
    return "".join(parts)


def _kind(style: Style | None) -> str:
    """The class of a style's colour."""
    if style is None or (style.color is None and not style.dim):
        return ""
    number = style.color.number if style.color is not None else None
    if style.dim or (number is not None and number >= GREYS):
        return "muted"
    return INK.get(number, "i3") if number is not None else "i3"


def _colours() -> str:
    """Classes of the themes' colours."""

    def of(theme: Theme) -> str:
        series = "".join(f".i{at}{{fill:{colour}}}" for at, colour in enumerate(theme.series))
        return (
            f".paper{{fill:{theme.paper};stroke:{theme.grid}}}.dot{{fill:{theme.grid}}}"
            f".ink{{fill:{theme.ink}}}.muted{{fill:{theme.muted}}}{series}"
        )

    return f"{of(LIGHT)}@media (prefers-color-scheme:dark){{{of(DARK)}}}"

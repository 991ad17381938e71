"""The first screen of a report as one SVG: its headline figures and its first two charts, as report.html has them."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from copter_frontends.report.theme import DARK, LIGHT, Theme
from pictures.drawing import dark_rules, smaller

WIDTH, EDGE, GAP = 960, 28, 12  # of the picture; its margin; between boxes
CARD = 118  # height of a headline figure's box
CHARTS = 2
SANS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif'
PAGE_LIGHT, PAGE_DARK = "#f5f6f8", "#0d1117"
"""Ground of the page (page.css), on which the boxes lie."""


@dataclass(slots=True)
class Screen(HTMLParser):
    """What the first screen of a report shows.

    Attributes
    ----------
    title, lead : str
    cards : list of list of str
        Name, figure, note.
    charts : list of (title, caption, SVG)
    """

    title: str = ""
    lead: str = ""
    cards: list[list[str]] = field(default_factory=list)
    charts: list[list[str]] = field(default_factory=list)
    _into: str = ""

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where the next text belongs."""
        given = {name: value or "" for name, value in attrs}
        self._into = given.get("class", "") if tag in ("div", "p") else tag
        if self._into == "card":
            self.cards.append([])
        elif tag == "figure":
            self.charts.append([])
        elif tag == "img" and self.charts and len(self.charts[-1]) == 2:
            self.charts[-1].append(base64.b64decode(given["src"].partition(",")[2]).decode())
        elif tag == "p" and self.charts and len(self.charts[-1]) == 1:
            self._into = "caption"

    def handle_data(self, data: str) -> None:
        """Keep the text where it belongs."""
        if not data.strip():
            return
        if self._into == "h1":
            self.title += data
        elif self._into == "lead":
            self.lead += data
        elif self._into in ("name", "figure", "note") and self.cards and len(self.cards[-1]) < 3:
            self.cards[-1].append(data)
        elif self._into in ("h2", "caption") and self.charts and len(self.charts[-1]) < 2:
            self.charts[-1].append(data)
        self._into = ""


def read(page: str) -> Screen:
    """What a report's first screen shows; ValueError if the page is no report."""
    screen = Screen()
    screen.feed(page)
    if not screen.title or not screen.cards or any(len(chart) != 3 for chart in screen.charts):
        raise ValueError("report.html has no headline figures: it is not a page that `copter simulate --out` wrote")
    return screen


def picture(page: str) -> str:
    """The SVG of a report's first screen."""
    screen = read(page)
    parts = [
        f'<text class="ink" x="{EDGE}" y="52" font-size="27" font-weight="650">{escape(screen.title)}</text>',
        f'<text class="muted" x="{EDGE}" y="78" font-size="15">{escape(screen.lead)}</text>',
        *_cards(screen.cards),
    ]
    width = (WIDTH - 2 * EDGE - GAP) // CHARTS
    below = 100 + CARD + GAP
    tallest = 0
    muted = '<text class="muted"'
    for at, (title, caption, svg) in enumerate(screen.charts[:CHARTS]):
        left = EDGE + at * (width + GAP)
        chart, height = _inside(svg, f"c{at}", left + 14, below + 84, width - 28)
        tallest = max(tallest, height)
        parts += [f'<text class="ink" x="{left + 16}" y="{below + 30}" font-weight="620">{escape(title)}</text>']
        for line, words in enumerate(_wrapped(caption, 62)[:2]):
            y = below + 50 + 17 * line
            parts.append(f'{muted} x="{left + 16}" y="{y}" font-size="13">{escape(words)}</text>')
        parts.append(chart)
    size = f'y="{below}" width="{width}" height="{tallest + 98:.0f}" rx="9"'
    boxes = [f'<rect class="box" x="{EDGE + at * (width + GAP)}" {size}/>' for at in range(len(screen.charts[:CHARTS]))]
    height = below + tallest + 98 + EDGE
    parts = _letters_once("\n".join(parts)).split("\n")
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    head = f"<svg xmlns=\"http://www.w3.org/2000/svg\" {size} font-family='{SANS}'>"
    ground = f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>'
    return "\n".join([head, _style("".join(parts)), ground, *boxes, *parts, "</svg>"]) + "\n"


def _cards(cards: list[list[str]]) -> list[str]:
    """Boxes with the headline figures, side by side."""
    width = (WIDTH - 2 * EDGE - GAP * (len(cards) - 1)) / len(cards)
    parts = []
    for at, card in enumerate(cards):
        name, figure, note = [*card, "", ""][:3]
        left = EDGE + at * (width + GAP)
        parts += [
            f'<rect class="box" x="{left:.0f}" y="100" width="{width:.0f}" height="{CARD}" rx="9"/>',
            f'<rect class="accent" x="{left + 1:.0f}" y="100" width="{width - 2:.0f}" height="3" rx="1.5"/>',
            f'<text class="muted" x="{left + 12:.0f}" y="126" font-size="13">{escape(name)}</text>',
            f'<text class="ink" x="{left + 12:.0f}" y="155" font-size="24" font-weight="640">{escape(figure)}</text>',
        ]
        for line, words in enumerate(_wrapped(note, int(width / 6.4))[:3]):
            y = 176 + 15 * line
            parts.append(f'<text class="muted" x="{left + 12:.0f}" y="{y}" font-size="12">{escape(words)}</text>')
    return parts


def _wrapped(text: str, most: int) -> list[str]:
    """The text in lines of at most so many letters, where its words allow."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _inside(svg: str, name: str, x: float, y: float, width: float) -> tuple[str, float]:
    """An SVG as a part of another, its ids with the name before them; and its height there."""
    svg = smaller(svg)
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if found is None:
        raise ValueError(f"{name}: a chart of the report has no viewBox")
    own_width, own_height = map(float, found.groups())
    height = width * own_height / own_width
    body = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    body = re.sub(r'(\bid="|href="#|url\(#)(?!DejaVu)', rf"\g<1>{name}-", body)
    head = f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:.0f}" viewBox="{found.group()[9:-1]}">'
    return f"{head}{body}</svg>", height


def _letters_once(svg: str) -> str:
    """The SVG with one outline of every letter: the charts have the same font."""
    seen: set[str] = set()

    def first(found: re.Match[str]) -> str:
        again = found.group(1) in seen
        seen.add(found.group(1))
        return "" if again else found.group()

    return re.sub(r'<path id="(DejaVu[^"]*)"[^>]*/>\n?', first, svg)


def _style(parts: str) -> str:
    """The classes' colours, light and dark, and the charts' in the dark."""

    def classes(page: str, theme: Theme) -> str:
        return (
            f".page{{fill:{page}}}.ink{{fill:{theme.ink}}}.muted{{fill:{theme.muted}}}"
            f".box{{fill:{theme.paper};stroke:{theme.grid}}}.accent{{fill:{theme.series[0]}}}"
        )

    dark = f"@media (prefers-color-scheme:dark){{{classes(PAGE_DARK, DARK)}{dark_rules(parts)}}}"
    return f"<style>{classes(PAGE_LIGHT, LIGHT)}{dark}</style>"

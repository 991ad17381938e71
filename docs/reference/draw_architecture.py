"""Draw reference/architecture.svg from reference/architecture.txt: floors from top to bottom, rooms beside each other.

Run by hand after a change of the text: python docs/reference/draw_architecture.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
WIDTH, ROOM, HEIGHT, FLOOR, LEFT, TOP = 1560, 260, 44, 92, 150, 16


def read(text: str) -> tuple[list[tuple[str, list[tuple[str, str]]]], list[tuple[str, str]]]:
    """Floors with their rooms (name, words), and the arrows."""
    floors: list[tuple[str, list[tuple[str, str]]]] = []
    arrows = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("== "):
            floors.append((line[3:], []))
        elif " -> " in line:
            source, targets = line.split(" -> ")
            arrows += [(source, target) for target in targets.split()]
        else:
            name, words = line.split(": ", 1)
            floors[-1][1].append((name, words))
    return floors, arrows


def draw(text: str) -> str:
    """The drawing as SVG; ValueError for an arrow that does not lead down."""
    floors, arrows = read(text)
    height = TOP + FLOOR * len(floors)
    place: dict[str, tuple[float, float]] = {}
    parts = []
    for level, (floor, rooms) in enumerate(floors):
        y = TOP + FLOOR * level
        parts.append(f'<text class="floor" x="8" y="{y + 27}">{escape(floor)}</text>')
        gap = (WIDTH - LEFT - ROOM * len(rooms)) / (len(rooms) + 1)
        for at, (name, words) in enumerate(rooms):
            x = LEFT + gap + at * (ROOM + gap)
            place[name] = (x + ROOM / 2, y)
            parts.append(f'<rect x="{x:.0f}" y="{y}" width="{ROOM}" height="{HEIGHT}" rx="6"/>')
            parts.append(f'<text class="name" x="{x + ROOM / 2:.0f}" y="{y + 18}">{escape(name)}</text>')
            parts.append(f'<text class="words" x="{x + ROOM / 2:.0f}" y="{y + 35}">{escape(words)}</text>')
    lines = []
    for source, target in arrows:
        (x1, y1), (x2, y2) = place[source], place[target]
        if y2 <= y1:
            raise ValueError(f"{source} -> {target} does not lead down")
        y1 += HEIGHT
        lines.append(
            f'<path d="M{x1:.0f} {y1} C{x1:.0f} {y1 + 34} {x2:.0f} {y2 - 40} {x2:.0f} {y2 - 5}" marker-end="url(#a)"/>'
        )
    style = (
        "rect{fill:#f4f6f8;stroke:#39506b}path{fill:none;stroke:#8aa0b8;stroke-width:1.1}"
        "text{font-family:sans-serif;fill:#1c2733}.name{font-size:14px;font-weight:bold;text-anchor:middle}"
        ".words{font-size:11px;text-anchor:middle}.floor{font-size:12px;fill:#66788a}"
    )
    marker = (
        '<marker id="a" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" style="fill:#8aa0b8;stroke:none"/></marker>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, f"<style>{style}</style><defs>{marker}</defs>", *lines, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    (HERE / "architecture.svg").write_text(draw((HERE / "architecture.txt").read_text()))

"""Colours and type of the plots, for light and for dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a plot.

    Attributes
    ----------
    paper, ink, muted, grid : str
        Ground, text, axis labels and lines.
    series : tuple of str
        Colours of series, in order; neighbours stay apart for readers who see fewer colours.
    """

    name: str
    paper: str
    ink: str
    muted: str
    grid: str
    series: tuple[str, ...]

    def settings(self) -> dict[str, Any]:
        """Return the theme as settings of matplotlib."""
        return {
            "figure.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "text.color": self.ink,
            "axes.labelcolor": self.muted,
            "axes.edgecolor": self.grid,
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "xtick.labelcolor": self.muted,
            "ytick.labelcolor": self.muted,
            "grid.color": self.grid,
            "grid.linewidth": 0.7,
            "axes.grid": True,
            "axes.grid.axis": "y",
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,
            "xtick.major.size": 3.0,
            "ytick.major.size": 0.0,
            "ytick.minor.size": 0.0,
            "font.size": 9.0,
            "axes.labelsize": 9.0,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "lines.linewidth": 1.5,
            "lines.solid_capstyle": "round",
            "svg.fonttype": "path",
            "svg.hashsalt": "copter",
        }


LIGHT = Theme(
    "light",
    "#ffffff",
    "#1b1f24",
    "#57606a",
    "#e3e7ec",
    ("#3366b8", "#e09f3e", "#4f9d8b", "#c8553d", "#7d6bb3", "#8fa3b8", "#a5764f"),
)
DARK = Theme(
    "dark",
    "#161b22",
    "#e6edf3",
    "#9aa5b1",
    "#2d343d",
    ("#6f9ee8", "#ecb662", "#6fc0ac", "#e57f68", "#a797dd", "#93a5b8", "#c79a72"),
)

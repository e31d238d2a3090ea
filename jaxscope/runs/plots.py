"""Plots as inline SVG: one style, readable on light and dark pages, the same bytes for the same data."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from jaxscope.evaluation.intervals import Interval

#: Near Okabe and Ito's colours, apart for the colour-blind too; those too dark or pale for a page are shifted.
PALETTE = ("#0f7fc4", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c8318", "#8a8a8a")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
#: With the colours used up, the next lines differ by their dashes.
DASHES = ("-", "--", ":", "-.")
#: Stand-ins, replaced in the SVG by the colours of the page around it.
_INK, _GRID = "#010203", "#040506"
_IN_PAGE = {_INK: "currentColor", _GRID: "var(--plot-grid, #88888855)", "'DejaVu Sans'": "system-ui, sans-serif"}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "jaxscope",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": _INK,
    "text.parse_math": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelcolor": _INK,
    "axes.edgecolor": _GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _GRID,
    "ytick.color": _GRID,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}
#: More points than this along a curve cannot be told apart.
_POINTS = 400


class Curve(NamedTuple):
    """One labelled quantity: a line per run and, with several runs, their mean."""

    label: str
    runs: Sequence[tuple[np.ndarray, np.ndarray]]  # per run: frames [n] and values [n]
    show_runs: bool = True


class Dots(NamedTuple):
    """One series of values per run on every row."""

    label: str
    values: Sequence[np.ndarray]  # per row: one value per run; empty where there is none
    intervals: Sequence[Interval | None]  # per row


class Marks(NamedTuple):
    """Reference points, one on every row."""

    label: str
    values: Sequence[float]  # nan where there is none


def curve_svg(curves: Sequence[Curve], *, title: str, ylabel: str, xlabel: str = "frames") -> str:
    """Lines over frames. Curves with more than 400 points are averaged over neighbours first."""
    return _svg(curve_figure(curves, title=title, ylabel=ylabel, xlabel=xlabel), title)


def dots_svg(
    rows: Sequence[str], series: Sequence[Dots], marks: Sequence[Marks] = (), *, title: str, xlabel: str
) -> str:
    """Every run's value as a dot and the interval of their mean as a bar, one row per name, rows from the top."""
    return _svg(dots_figure(rows, series, marks, title=title, xlabel=xlabel), title)


def curve_figure(curves: Sequence[Curve], *, title: str, ylabel: str, xlabel: str = "frames") -> Figure:
    """The figure of `curve_svg`."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.add_subplot()
        handles = []
        for index, curve in enumerate(curves):
            colour = PALETTE[index % len(PALETTE)]
            dash = DASHES[index // len(PALETTE) % len(DASHES)]
            if curve.show_runs and len(curve.runs) > 1:
                for frames, values in curve.runs:
                    _line(axes, frames, values, color=colour, linestyle=dash, linewidth=0.8, alpha=0.45)
            _line(axes, *mean_curve(curve.runs), color=colour, linestyle=dash, linewidth=1.8)
            handles.append(Line2D([], [], color=colour, linestyle=dash, linewidth=1.8))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_title(_short(title, 90))
        _legend(axes, handles, [curve.label for curve in curves])
    return figure


def dots_figure(
    rows: Sequence[str], series: Sequence[Dots], marks: Sequence[Marks] = (), *, title: str, xlabel: str
) -> Figure:
    """The figure of `dots_svg`."""
    with matplotlib.rc_context(_STYLE):
        lane = 0.76 / max(len(series), 1)
        height = 1.1 + len(rows) * max(0.42, 0.24 * len(series))
        figure = Figure(figsize=(7.2, height), layout="constrained")
        axes = figure.add_subplot()
        handles, labels = [], []
        for index, one in enumerate(series):
            style: dict[str, Any] = {"color": PALETTE[index % len(PALETTE)], "marker": MARKERS[index % len(MARKERS)]}
            for row, (values, interval) in enumerate(zip(one.values, one.intervals, strict=True)):
                y = row + (index - (len(series) - 1) / 2) * lane
                _row_of_dots(axes, y, 0.28 * min(lane, 0.5), np.asarray(values, float), interval, style)
            handles.append(Line2D([], [], linestyle="-", linewidth=1.8, markersize=5, **style))
            labels.append(one.label)
        for index, mark in enumerate(marks):
            look: dict[str, Any] = {"color": _INK, "linestyle": (":", "-")[index % 2], "linewidth": 1.3}
            for row, value in enumerate(mark.values):
                axes.plot([value, value], [row - 0.42, row + 0.42], alpha=0.75, **look)
            handles.append(Line2D([], [], **look))
            labels.append(mark.label)
        axes.set_yticks(range(len(rows)), [_short(row) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(8))
        axes.set_xlabel(xlabel)
        axes.set_title(_short(title, 90))
        _legend(axes, handles, labels)
    return figure


def mean_curve(runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean over runs at the frames where every run has a finite value."""
    finite = [dict(zip(frames[ok], values[ok], strict=True)) for frames, values in runs for ok in [np.isfinite(values)]]
    shared = sorted(set.intersection(*map(set, finite))) if finite else []
    return np.array(shared, float), np.array([np.mean([run[x] for run in finite]) for x in shared], float)


def compact(number: float) -> str:
    """A count in few characters: 950, 256k, 1.5M."""
    for scale, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= scale:
            return f"{number / scale:.4g}{suffix}"
    return f"{number:.4g}"


def _line(axes: Axes, frames: np.ndarray, values: np.ndarray, **look) -> None:
    frames, values = _thinned(np.asarray(frames, float), np.asarray(values, float))
    # A single point has no line to be seen.
    axes.plot(frames, values, marker="o" if len(frames) == 1 else None, markersize=4, **look)


def _thinned(frames: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(frames) <= _POINTS:
        return frames, values
    groups = -(-len(frames) // _POINTS)
    starts = np.arange(0, len(frames), groups)
    sizes = np.diff(np.append(starts, len(frames)))
    return np.add.reduceat(frames, starts) / sizes, np.add.reduceat(values, starts) / sizes


def _row_of_dots(axes: Axes, y: float, half: float, values: np.ndarray, interval: Interval | None, style) -> None:
    colour = style["color"]
    # Runs stand slightly apart, in their order, so that equal values are still counted.
    spread = np.linspace(-half, half, len(values)) if len(values) > 1 else np.zeros(len(values))
    axes.plot(values, y + spread, linestyle="none", markersize=5, alpha=0.85, markeredgewidth=0, **style)
    if interval is None:
        return
    if interval.low is not None and interval.high is not None:
        axes.plot([interval.low, interval.high], [y, y], color=colour, linewidth=1.8, alpha=0.7)
        axes.plot([interval.mean] * 2, [y - 1.5 * half, y + 1.5 * half], color=colour, linewidth=1.8)


def _legend(axes: Axes, handles: Sequence[Line2D], labels: Sequence[str]) -> None:
    """Below the axes; the texts are set afterwards, since a label that starts with _ would be left out."""
    labels = [_short(label) for label in labels]
    columns = max(1, min(4, 100 // (8 + max(map(len, labels), default=0))))
    figure = axes.figure
    assert isinstance(figure, Figure)
    legend = figure.legend(
        handles, ["x" * len(label) for label in labels], loc="outside lower left", ncols=columns, handlelength=2.4
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)


def _short(label: str, longest: int = 36) -> str:
    """A label that leaves room for the plot, of characters that XML can hold."""
    label = "".join(letter if letter.isprintable() else " " for letter in label)
    return label if len(label) <= longest else label[: longest - 1] + "…"


def _svg(figure: Figure, title: str) -> str:
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser's fonts have the letters that the one measured with lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), title)


def _inlined(svg: bytes, title: str) -> str:
    """A matplotlib SVG as an element of a page: in the page's colours and fonts, without namespaces, rules for the
    whole page or external addresses, and with ids that no other plot has."""
    root = ElementTree.fromstring(svg)
    prefix = f"p{hashlib.sha256(svg).hexdigest()[:10]}-"
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg.decode()))
    for element in root.iter():
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            if name != "space" and (name != "id" or value in used):
                element.set(name, _for_page(name, value, prefix))
    view = root.attrib["viewBox"]
    root.attrib.clear()
    look = {"class": "plot", "role": "img", "viewBox": view, "stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib.update(look)
    root.text = None
    heading = ElementTree.Element("title")
    heading.text = _short(title, 90)
    root.insert(0, heading)
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _for_page(name: str, value: str, prefix: str) -> str:
    """An attribute's value with the page's colours and fonts, and with renamed ids."""
    if name == "id":
        return prefix + value
    if name == "href":
        return value.replace("#", "#" + prefix, 1)
    if name == "style":
        for stand_in, in_page in _IN_PAGE.items():
            value = value.replace(stand_in, in_page)
    return value.replace("url(#", "url(#" + prefix)

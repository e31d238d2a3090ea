"""Bring the README's demo tables and pictures up to date: python docs/refresh.py DEMO_FOLDER.

The folder is one that `make demo` has written. The pictures go to docs/images, the tables between the comments
`<!-- demo -->` and `<!-- /demo -->` of README.md.
"""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

from rich.console import Console

from jaxscope.evaluation.intervals import Interval, t_interval
from jaxscope.files import write_bytes, write_text
from jaxscope.runs.plots import Dots, Marks, dots_svg
from jaxscope.runs.results import GroupResult, Judgement, parse_judgement
from jaxscope.runs.tables import result_tables

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
METHODS = ("self-play", "popplay")
RECORDING = "popplay/recordings/with-synchronized-loading.gif"
#: A page of any colour may be around the picture, so it has its own.
ALONE = '<svg xmlns="http://www.w3.org/2000/svg" style="background: #ffffff; color: #1d1f24" '


def refresh(demo: Path) -> None:
    """Write both pictures and the tables of the demo in `demo`."""
    evals = [json.loads((demo / method / "eval.json").read_text()) for method in METHODS]
    IMAGES.mkdir(parents=True, exist_ok=True)
    plot = held_out_plot([parse_judgement(payload) for payload in evals])
    write_text(IMAGES / "held-out.svg", plot.replace("<svg ", ALONE, 1) + "\n")
    write_bytes(IMAGES / "episode.gif", (demo / RECORDING).read_bytes())
    readme = (ROOT / "README.md").read_text()
    block = f"<!-- demo -->\n```text\n{tables_text(evals)}```\n<!-- /demo -->"
    write_text(ROOT / "README.md", re.sub("<!-- demo -->.*<!-- /demo -->", lambda _: block, readme, flags=re.DOTALL))


def held_out_plot(judgements: list[Judgement]) -> str:
    """Every training run with every held-out partner, as SVG to stand within a page."""
    groups = [judgement.groups["held-out"] for judgement in judgements]
    series = [Dots(j.method, list(g.per_partner.T), _intervals(g)) for j, g in zip(judgements, groups, strict=True)]
    marks = [Marks("random", list(groups[0].random)), Marks("best script", list(groups[0].best_script))]
    title = f"{judgements[0].env}: training runs with partners they never met"
    return dots_svg(groups[0].partners, series, marks, title=title, xlabel="team return")


def _intervals(group: GroupResult) -> list[Interval]:
    return [t_interval(values) for values in group.per_partner.T]


def tables_text(evals: list[dict]) -> str:
    """The tables that the demo prints about held-out partners."""
    page = io.StringIO()
    console = Console(file=page, width=100)
    for table in result_tables(evals)[:3]:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    refresh(Path(sys.argv[1]))

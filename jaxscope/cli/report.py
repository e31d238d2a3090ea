"""Write one self-contained HTML page about runs: jaxscope report RUN [RUN ...].

Learning curves, evaluation tables and recordings, with the resolved settings. For one run the page goes into its
folder, for several to report.html, or to --out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jaxscope.runs.report import write_report


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders."""
    out: Path | None = None
    """The page to write."""


def run(options: Options) -> None:
    if not options.runs:
        raise ValueError("name at least one run folder")
    out = options.out or (options.runs[0] / "report.html" if len(options.runs) == 1 else Path("report.html"))
    write_report(list(options.runs), out)
    print(out)

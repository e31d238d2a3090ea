"""Bring the README's comparison with peers up to date: python docs/refresh_bench.py [benchmarks/results.json].

The file is one that `make bench` has written. The table goes between the comments `<!-- bench -->` and
`<!-- /bench -->` of README.md.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

from jaxscope.files import write_text

ROOT = Path(__file__).parent.parent
PEERS = ("jumanji", "jaxmarl", "PureJaxRL", "IPPO-FF", "gather")
IN_PYTHON = ("lbforaging", "overcooked_ai", "vmas")  # far behind: not worth a row


def table(results: dict[str, Any]) -> str:
    """One row per contender of ours beside its peer: medians, and the median of paired ratios with its range."""
    lines = ["| what | jaxscope | peer | ratio |", "|---|---|---|---|"]
    for record in results["results"]:
        settings, reference = record["settings"], _reference(record)
        for rate in record["rates"]:
            if rate is reference or rate["name"].startswith(IN_PYTHON):
                continue
            paired = [ours / theirs for ours, theirs in zip(rate["rates"], reference["rates"], strict=True)]
            ratio = f"{statistics.median(paired):.1f} [{min(paired):.1f}, {max(paired):.1f}]"
            what = f"{settings['what']}: {rate['name'].removeprefix('jaxscope ')}"
            if settings["what"] == "train":
                what = f"train: {settings['env']}, {rate['name'].removeprefix('jaxscope ')}"
            if settings["what"] == "population":
                what = f"{settings['partners']} partners, {settings['num_envs']} envs: {rate['name']}"
            ours, theirs = f"{rate['median']:,.0f} {rate['unit']}", f"{reference['name']}: {reference['median']:,.0f}"
            lines.append(f"| {what} | {ours} | {theirs} | {ratio} |")
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if name != "jaxscope")
    return "\n".join([*lines, "", f"{machine['cpu']}, {machine['cores']} cores, no accelerator; {versions}."])


def _reference(record: dict[str, Any]) -> dict[str, Any]:
    """The peer: for partners the gather per environment, else the library that is not ours."""
    return next(rate for rate in record["rates"] if rate["name"].startswith(PEERS))


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmarks" / "results.json"
    block = f"<!-- bench -->\n{table(json.loads(path.read_text()))}\n<!-- /bench -->"
    readme = (ROOT / "README.md").read_text()
    readme = re.sub("<!-- bench -->.*<!-- /bench -->", lambda _: block, readme, flags=re.DOTALL)
    write_text(ROOT / "README.md", readme)

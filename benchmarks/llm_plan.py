"""Memory per device of training and of conversations, for every layout of some devices; nothing is allocated."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from jaxscope.agents.llm import known
from jaxscope.agents.llm.linear import ALL_LINEAR, LoraConfig
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.plan import Precision, Row, parameters, plan

GIB = 2**30


def run(
    model: str | None = None,
    devices: int = 8,
    rows: int = 64,
    context: int = 4096,
    rank: int | None = None,
    precision: Precision = "bfloat16",
) -> list[dict[str, Any]]:
    """Plan, print and return the records.

    Args:
        model: a name of `known.names()`; None plans all of them.
        rows: sequences in the cache at once.
        context: tokens of each.
        rank: train adapters of this rank in every linear layer; None trains all weights.
        precision: of the weights and the cache.

    Raises:
        ValueError: there is no such model, or the numbers do not fit it.
    """
    records = []
    lora = None if rank is None else LoraConfig(rank=rank, targets=ALL_LINEAR)
    for name in [model] if model else known.names():
        planned = LanguageModel(known.config(name), lora)
        found = plan(planned, devices, rows, context, precision)
        count = parameters(planned)
        settings = {"rows": rows, "context": context, "rank": rank, "precision": precision}
        shared = {"model": name, "parameters": count, "devices": devices, **settings}
        records += [shared | _record(row) for row in found]
        what = "all weights" if rank is None else f"adapters of rank {rank}"
        _print(
            f"{name}: {count / 1e9:.2f}e9 parameters in {precision}, {what} trained, {rows} x {context} tokens", found
        )
    return records


def _record(row: Row) -> dict[str, Any]:
    memory = {f"{name}_bytes": size for name, size in row.memory._asdict().items()}
    return {
        **row.layout._asdict(),
        **memory,
        "total_bytes": row.memory.total,
        "undivided": list(map(str, row.undivided)),
    }


def _print(title: str, rows: list[Row]) -> None:
    table = Table(
        title=f"{title}\nlayout is data x fsdp x tensor, figures are GiB on each device", title_justify="left"
    )
    for column in ("layout", "weights", "gradients", "optimiser", "cache", "total", "whole"):
        table.add_column(column, justify="right")
    for row in rows:
        sizes = [f"{size / GIB:.2f}" for size in (*row.memory, row.memory.total)]
        table.add_row(" x ".join(map(str, row.layout)), *sizes, str(len(row.undivided) or ""))
    console = Console()
    console.print(table)
    problems = list(dict.fromkeys(str(one) for row in rows for one in row.undivided))
    if problems:
        console.print("whole on every device, where it is not divided:")
    for problem in problems:
        console.print(f"  {problem}", highlight=False, soft_wrap=True)

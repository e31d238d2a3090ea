"""Results as tables, once as plain text cells: the terminal and the report show the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from jaxscope.evaluation.intervals import Interval, rounded, t_interval
from jaxscope.runs.results import GROUPS, GroupResult, Judgement, Returns, labels, parse_judgement

NOTHING = "-"
TITLES = {"held-out": "Held-out partners", "training": "Training partners"}
#: Columns of a partner table that name a row; all others hold numbers.
NAMING = ("Partner", "Behaviour", "Method", "Which script", "Mode")


@dataclass(frozen=True)
class Sheet:
    """A table of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without(self, *columns: str) -> Sheet:
        """The sheet without some columns."""
        kept = [index for index, column in enumerate(self.columns) if column not in columns]
        rows = tuple(tuple(row[index] for index in kept) for row in self.rows)
        return Sheet(self.title, tuple(self.columns[index] for index in kept), rows)


def result_tables(evals: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Tables for the terminal from the contents of `eval.json` files: per environment one of all methods, then one of
    all partners of each group.

    Raises:
        ValueError: an evaluation is damaged.
    """
    judgements = [parse_judgement(payload, f"evaluation {number}") for number, payload in enumerate(evals, 1)]
    tables = []
    for env in dict.fromkeys(judgement.env for judgement in judgements):
        here = [judgement for judgement in judgements if judgement.env == env]
        labelled = list(zip(labels([judgement.method for judgement in here]), here, strict=True))
        tables.append(_rich(headline_sheet(env, labelled)))
        tables += [
            _rich(sheet)
            for sheet in (
                unshaped_sheet(f"{env}: without shaping", labelled),
                curve_sheet(f"{env}: along the run", labelled),
                modes_sheet(f"{env}: how every policy ends its episodes with itself, in %", labelled),
                distinct_sheet(f"{env}: different modes in a population", labelled),
            )
            if sheet is not None
        ]
        for group in group_names(here):
            sheet = partner_sheet(f"{env}: {group_title(group).lower()}", group, labelled)
            tables.append(_rich(sheet.without("Behaviour", "Which script", *(["Method"] if len(here) == 1 else []))))
    return tables


def headline_sheet(title: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet:
    """One row a method: intervals over training runs, at the last checkpoint."""
    return _methods_sheet(title, labelled, lambda result: result)


def unshaped_sheet(title: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet | None:
    """The headline with the shaping left out of the returns, where an environment pays any."""
    if not any(result.unshaped for _, judgement in labelled for result in judgement.groups.values()):
        return None
    return _methods_sheet(title, labelled, lambda result: result.unshaped)


def _methods_sheet(
    title: str, labelled: Sequence[tuple[str, Judgement]], pick: Callable[[GroupResult], Returns | None]
) -> Sheet:
    columns = ["Method", "Runs", "Frames"]
    judgements = [judgement for _, judgement in labelled]
    found = group_names(judgements)
    groups = list(dict.fromkeys([*(GROUPS if set(found) & set(GROUPS) else ()), *found]))
    for group in groups:
        name = group.capitalize()
        columns += [f"{name} mean"] if group == "training" else [f"{name} mean", f"{name} worst"]
    rows = []
    for label, judgement in labelled:
        row = [label, str(judgement.runs), f"{judgement.frames:,}"]
        for group in groups:
            returns = pick(judgement.groups[group]) if group in judgement.groups else None
            row.append(str(returns.mean_interval) if returns else NOTHING)
            if group != "training":
                row.append(str(returns.worst_interval) if returns else NOTHING)
        rows.append(tuple(row))
    return Sheet(title, tuple(columns), tuple(rows))


def curve_sheet(title: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet | None:
    """One row for each method with a curve over training: what stands beside its last checkpoint."""
    rows = [
        (label, _interval(best_checkpoint(judgement)), _interval(mean_over_training(judgement)))
        for label, judgement in labelled
        if judgement.curve is not None
    ]
    columns = ("Method", "Best checkpoint, held-out mean", "Mean over training, held-out")
    return Sheet(title, columns, tuple(rows)) if rows else None


def modes_sheet(title: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet | None:
    """One row a policy: the share of its episodes with each outcome, and the most frequent; of what names outcomes."""
    told = [(label, judgement.modes) for label, judgement in labelled if judgement.modes is not None]
    outcomes = list(dict.fromkeys(name for _, modes in told for name in modes.outcomes))
    rows = []
    for label, modes in told:
        for seed, (of_policy, mode) in enumerate(zip(modes.shares, modes.modes, strict=True)):
            share = dict(zip(modes.outcomes, of_policy, strict=True))
            cells = [f"{100 * share[name]:.0f}" if name in share else NOTHING for name in outcomes]
            rows.append((label, str(seed), *cells, f"{100 * (1 - of_policy.sum()):.0f}", " or ".join(mode) or NOTHING))
    return Sheet(title, ("Method", "Seed", *outcomes, "Unsolved", "Mode"), tuple(rows)) if rows else None


def distinct_sheet(title: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet | None:
    """One row a method: how many different modes a population of its policies has, beside chance."""
    told = [(label, judgement.modes) for label, judgement in labelled if judgement.modes is not None]
    rows = [
        (
            label,
            str(len(modes.modes)),
            str(sum(not mode for mode in modes.modes)),
            str(modes.population),
            NOTHING if np.isnan(modes.distinct) else f"{modes.distinct:.2f}",
            f"{modes.chance:.2f}",
        )
        for label, modes in told
    ]
    columns = ("Method", "Policies", "Without mode", "Population of", "Different modes", "By chance")
    return Sheet(title, columns, tuple(rows)) if rows else None


def partner_sheet(title: str, group: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet:
    """One row a partner and method: intervals over training runs, over all seats and in each, and the bounds.

    Where shaping is paid, the return over all seats stands there without it too; the bounds include it.
    """
    judged = [(label, judgement.groups[group]) for label, judgement in labelled if group in judgement.groups]
    seats = max(result.per_seat.shape[2] for _, result in judged)
    shaped = any(result.unshaped for _, result in judged)
    columns = ["Partner", "Behaviour", "Method", "Return"]
    columns += [f"Seat {seat}" for seat in range(seats)]
    rows = []
    for name in partners_of(group, [judgement for _, judgement in labelled]):
        for label, result in judged:
            if name not in result.partners:
                continue
            index = result.partners.index(name)
            row = [name, result.descriptions[index], label, str(t_interval(result.per_partner[:, index]))]
            row += [str(t_interval(result.per_seat[:, index, seat])) for seat in range(result.per_seat.shape[2])]
            row += [NOTHING] * (seats - result.per_seat.shape[2])
            row += [_number(result.random[index]), _number(result.best_script[index])]
            if shaped:
                row.append(str(t_interval(result.unshaped.per_partner[:, index])) if result.unshaped else NOTHING)
            rows.append((*row, result.best_script_name[index] or NOTHING))
    last = ("Random", "Best script", *(["Without shaping"] if shaped else []), "Which script")
    return Sheet(title, (*columns, *last), tuple(rows))


def events_sheet(title: str, group: str, labelled: Sequence[tuple[str, Judgement]]) -> Sheet | None:
    """One row a partner and method: how often each event happened an episode, by the learner + by its partners.

    Events that never happened have no column.
    """
    judged = [(label, judgement.groups[group]) for label, judgement in labelled if group in judgement.groups]
    kinds = [kind for _, result in judged for kind in (result.learner_events, result.partner_events)]
    happened = dict.fromkeys(name for kind in kinds for name, counts in kind.items() if counts.any())
    rows = []
    for partner in partners_of(group, [judgement for _, judgement in labelled]):
        for label, result in judged:
            if partner in result.partners:
                counts = [_counts(result, name, result.partners.index(partner)) for name in happened]
                rows.append((partner, label, *counts))
    return Sheet(title, ("Partner", "Method", *happened), tuple(rows)) if happened else None


def _counts(result: GroupResult, event: str, partner: int) -> str:
    by = [kind.get(event) for kind in (result.learner_events, result.partner_events)]
    return " + ".join(NOTHING if counts is None else f"{counts[:, partner].mean():.2f}" for counts in by)


def group_names(judgements: Sequence[Judgement]) -> list[str]:
    """All groups, held-out first."""
    present = dict.fromkeys(name for judgement in judgements for name in judgement.groups)
    return sorted(present, key=lambda name: GROUPS.index(name) if name in GROUPS else len(GROUPS))


def group_title(group: str) -> str:
    return TITLES.get(group, f"Partners of group {group}")


def partners_of(group: str, judgements: Sequence[Judgement]) -> list[str]:
    """All partners of a group, in the order in which they first occur."""
    results = [judgement.groups[group] for judgement in judgements if group in judgement.groups]
    return list(dict.fromkeys(name for result in results for name in result.partners))


def best_checkpoint(judgement: Judgement) -> Interval | None:
    """The held-out mean of every run at the checkpoint of its highest training return.

    Held-out partners do not choose the checkpoint that they judge.
    """
    curve = judgement.curve
    if curve is None or not np.isfinite(curve.mean).all() or not np.isfinite(curve.training_return).any(axis=0).all():
        return None
    best = np.nanargmax(curve.training_return, axis=0)
    return t_interval(curve.mean[best, np.arange(len(best))])


def mean_over_training(judgement: Judgement) -> Interval | None:
    """The area under the curve of the held-out mean, divided by its length in frames."""
    curve = judgement.curve
    if curve is None or not np.isfinite(curve.mean).all() or len(curve.frames) < 2:
        return None
    widths = np.diff(curve.frames)[:, None]
    return t_interval((widths * (curve.mean[1:] + curve.mean[:-1]) / 2).sum(axis=0) / widths.sum())


def _interval(interval: Interval | None) -> str:
    return NOTHING if interval is None else str(interval)


def _number(value: float) -> str:
    return NOTHING if np.isnan(value) else rounded(value)


def _rich(sheet: Sheet) -> Table:
    """A sheet that fits a terminal: seats without their intervals, long names folded and never cut.

    Cells are `Text`, so that brackets in a name are no markup.
    """
    narrow: dict[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=Text(sheet.title), title_justify="left", **narrow)
    for column in sheet.columns:
        named = column in NAMING
        heading = column if named else column.replace(" ", "\n")
        table.add_column(heading, justify="left" if named else "right", overflow="fold", no_wrap=not named)
    before: Sequence[str] = ()
    for row in sheet.rows:
        cells = [
            cell.split(" ± ")[0] if column.startswith("Seat ") else cell
            for column, cell in zip(sheet.columns, row, strict=True)
        ]
        if sheet.columns[0] == "Partner" and before and before[0] == row[0]:
            cells[0] = ""
        table.add_row(*[Text(cell) for cell in cells])
        before = row
    return table

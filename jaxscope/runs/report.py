"""The report: one page that holds everything about some runs and loads nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jaxscope.evaluation.intervals import t_interval
from jaxscope.files import write_text
from jaxscope.runs._page import Markup, element, page
from jaxscope.runs.plots import Curve, Dots, Marks, curve_svg, dots_svg
from jaxscope.runs.results import Judgement, RunFolder, labels, read_run
from jaxscope.runs.tables import (
    NAMING,
    NOTHING,
    Sheet,
    curve_sheet,
    distinct_sheet,
    events_sheet,
    group_names,
    group_title,
    headline_sheet,
    modes_sheet,
    partner_sheet,
    partners_of,
    unshaped_sheet,
)

Labelled = list[tuple[str, RunFolder]]
Judged = list[tuple[str, Judgement]]


def write_report(run_dirs: list[Path], path: Path) -> None:
    """Write one HTML page about the runs in `run_dirs` to `path`, runs of one environment together.

    The page needs no script and no other file. The same run folders give the same page.

    Raises:
        ValueError: there is no run, a folder holds none, or a file in one is damaged; the message names the file.
    """
    if not run_dirs:
        raise ValueError("a report needs at least one run folder")
    folders = dict.fromkeys(Path(folder).resolve() for folder in run_dirs)
    runs = [read_run(folder) for folder in folders]
    text = page("jaxscope report", _body(runs))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _body(runs: Sequence[RunFolder]) -> Iterator[Markup]:
    yield element("h1", "jaxscope report")
    counted = f"{len(runs)} run folder{'s' if len(runs) > 1 else ''}: " + ", ".join(run.folder.name for run in runs)
    yield element("p", counted, class_="faint")
    for env in dict.fromkeys(run.env for run in runs):
        here = [run for run in runs if run.env == env]
        told = labels([run.method for run in here], [run.folder.name for run in here])
        labelled = list(zip(told, here, strict=True))
        yield element("h2", env)
        yield from _results(labelled)
        yield from _training(labelled)
        yield from _recordings(labelled)
        yield from _configurations(labelled)
    yield from _reading_guide()


def _results(labelled: Labelled) -> Iterator[Markup]:
    judged = [(label, run.judgement) for label, run in labelled if run.judgement is not None]
    yield element("h3", "Result at the last checkpoint")
    if judged:
        yield _table(headline_sheet("", judged))
        unshaped, along = unshaped_sheet("", judged), curve_sheet("", judged)
        if unshaped is not None:
            yield element("p", "The same without the shaping in the returns:")
            yield _table(unshaped)
        if along is not None:
            yield _table(along)
    for note in (note for label, run in labelled for note in _notes(label, run)):
        yield element("p", note, class_="note")
    yield from _modes(judged)
    judgements = [judgement for _, judgement in judged]
    for group in group_names(judgements):
        yield element("h3", group_title(group))
        yield _figure(
            _summary_dots(group, judged), "Dots: one training run each. Bars: the 95 % interval of their mean."
        )
        yield _table(partner_sheet("", group, judged))
        events = events_sheet("", group, judged)
        if events is not None:
            summary = "Events: mean counts an episode, by the learner + by its partners"
            yield element("details", element("summary", summary), _table(events))
        yield _figure(
            _partner_dots(group, judged),
            "All seats together. Upright marks: a player at random (dotted) and the best scripted player (solid) with "
            "the same partner, where known.",
        )
    curves = [_checkpoint_curve(label, judgement) for label, judgement in judged if judgement.curve is not None]
    if curves:
        svg = curve_svg(curves, title="Held-out mean by checkpoint", ylabel="return")
        yield _figure(svg, "Faint lines: training runs. Strong lines: their mean. The headline is the last checkpoint.")


def _modes(judged: Judged) -> Iterator[Markup]:
    """Where an environment names its outcomes: which of them every policy prefers."""
    of_policies, of_populations = modes_sheet("", judged), distinct_sheet("", judged)
    if of_policies is None or of_populations is None:
        return
    yield element("h3", "How every policy ends its episodes with itself")
    yield element(
        "p",
        "Share of the episodes with each outcome, in %. A policy's mode is its most frequent outcome: those that tie "
        f"are all named, and {NOTHING} stands where the policy never had any.",
    )
    yield _table(of_policies)
    yield element(
        "p",
        "The mean number of different modes in a population of some of these policies, over all such populations. Each "
        "of several tied modes counts in equal part; a policy without a mode adds none. By chance: every policy with "
        "one mode, drawn uniformly.",
    )
    yield _table(of_populations)


def _notes(label: str, run: RunFolder) -> Iterator[str]:
    """What a reader must know before trusting the numbers of a run."""
    judgement = run.judgement
    if judgement is None:
        yield f"{label} has not been evaluated: there is no eval.json in {run.folder.name}. It has no row above."
        return
    seeds = run.config.get("seeds")
    if isinstance(seeds, int) and seeds != judgement.runs:
        yield f"{label}: {seeds} training runs were set up, {judgement.runs} evaluated."
    if judgement.runs == 1:
        yield f"{label}: one training run only, which says nothing about how much runs differ; no interval is given."
    reached = max((line["frames"] for line in run.metrics), default=judgement.frames)
    if reached > judgement.frames:
        yield f"{label} was evaluated at {judgement.frames:,} frames; its log goes on to {reached:,}."
    for group, result in judgement.groups.items():
        seen = _met(run, group, result.partners)
        new = [name for name in result.partners if name not in seen]
        if group == "held-out" and seen:
            yield f"{label} met {', '.join(seen)} in training: for this run they are not held out."
        if group == "training" and new:
            who = "any of the training partners" if len(new) == len(result.partners) else ", ".join(new)
            yield f"{label} did not meet {who} in training: there, too, it plays with strangers."


def _met(run: RunFolder, group: str, partners: Sequence[str]) -> list[str]:
    """Those of a group's partners that a run trained with: asked for one by one or as a group, or seen in its log."""
    asked = {str(name).replace("_", "-") for name in run.config.get("partners") or ()}
    logged = {name for line in run.metrics for name in line.get("partner_return") or ()}
    return [name for name in partners if group in asked or name.replace("_", "-") in asked or name in logged]


def _summary_dots(group: str, judged: Judged) -> str:
    series = [
        Dots(label, [result.mean, result.worst], [result.mean_interval, result.worst_interval])
        for label, result in _of_group(group, judged)
    ]
    rows = ["mean over partners", "worst partner"]
    return dots_svg(rows, series, title=f"{group_title(group)}: every training run", xlabel="return")


def _partner_dots(group: str, judged: Judged) -> str:
    partners = partners_of(group, [judgement for _, judgement in judged])
    results = _of_group(group, judged)
    series = []
    for label, result in results:
        where = [result.partners.index(name) if name in result.partners else None for name in partners]
        values = [np.array([]) if index is None else result.per_partner[:, index] for index in where]
        series.append(Dots(label, values, [t_interval(value) if value.size else None for value in values]))
    bounds = [("random", "random"), ("best_script", "best script")]
    marks = [Marks(words, [_first_bound(field, name, results) for name in partners]) for field, words in bounds]
    known = [mark for mark in marks if np.isfinite(mark.values).any()]
    return dots_svg(partners, series, known, title=f"{group_title(group)}, one by one", xlabel="return")


def _first_bound(field: str, partner: str, results) -> float:
    values = [
        getattr(result, field)[result.partners.index(partner)] for _, result in results if partner in result.partners
    ]
    return next((value for value in values if np.isfinite(value)), float("nan"))


def _of_group(group: str, judged: Judged):
    return [(label, judgement.groups[group]) for label, judgement in judged if group in judgement.groups]


def _checkpoint_curve(label: str, judgement: Judgement) -> Curve:
    curve = judgement.curve
    assert curve is not None
    return Curve(label, [(curve.frames, of_run) for of_run in curve.mean.T])


def _training(labelled: Labelled) -> Iterator[Markup]:
    yield element("h3", "Training")
    for label, run in labelled:
        if not run.metrics:
            yield element("p", f"{label} has logged no metrics.", class_="note")
    plots = [
        ("return", "Return of training episodes", "Whom a method plays with in training differs by method, so these "
         "curves tell whether each still learns, not which is better."),
        ("unshaped_return", "Return without shaping", "The same episodes without the part of their return that is a "
         "hint for learners."),
        ("entropy", "Policy entropy", "Entropy of the learner's actions, in nats; that of real numbers may "
         "be negative."),
    ]  # fmt: skip
    for name, title, caption in plots:
        curves = [Curve(label, run.series(name)) for label, run in labelled]
        curves = [curve for curve in curves if _has_points(curve)]
        if curves:
            caption += " Faint lines: training runs. Strong lines: their mean."
            yield _figure(curve_svg(curves, title=title, ylabel=name), caption)
    for label, run in labelled:
        for name, title, ylabel in (
            ("partner_return", "return with each partner", "return"),
            ("partner_probability", "how often each partner is drawn", "probability"),
        ):
            curves = [curve for curve in _partner_curves(run, name) if _has_points(curve)]
            if curves:
                yield _figure(curve_svg(curves, title=f"{label}: {title}", ylabel=ylabel), "Means over training runs.")


def _partner_curves(run: RunFolder, name: str) -> list[Curve]:
    partners = dict.fromkeys(partner for line in run.metrics for partner in line.get(name) or {})
    return [Curve(partner, run.series(name, partner), show_runs=False) for partner in partners]


def _has_points(curve: Curve) -> bool:
    return any(np.isfinite(values).any() for _, values in curve.runs)


def _recordings(labelled: Labelled) -> Iterator[Markup]:
    if not any(run.recordings for _, run in labelled):
        return
    yield element("h3", "Recordings")
    yield element("p", "Single episodes: they show how a team plays, not how well.", class_="faint")
    shown = [_recording(label, path) for label, run in labelled for path in run.recordings]
    yield element("div", *shown, class_="recordings")


def _recording(label: str, path: Path) -> Markup:
    data = path.read_bytes()
    try:
        with Image.open(io.BytesIO(data), formats=["GIF"]) as image:
            comment = image.info.get("comment", b"")
    except OSError:
        raise ValueError(f"{path} is not a GIF picture") from None
    words = comment.decode(errors="replace") if isinstance(comment, bytes) else str(comment)
    caption = f"{label}, {path.stem}" + (f": {words}" if words else "")
    source = "data:image/gif;base64," + base64.b64encode(data).decode()
    return element("figure", element("img", src=source, alt=caption), element("figcaption", caption))


def _configurations(labelled: Labelled) -> Iterator[Markup]:
    yield element("h3", "Configuration and versions")
    for label, run in labelled:
        settings = {key: value for key, value in run.config.items() if key not in ("config", "format")}
        rows = [*_flat(settings), *_flat(run.config["config"], "config.")]
        lines = [element("tr", element("td", name), element("td", value)) for name, value in rows]
        table = element("table", element("tbody", *lines))
        yield element("details", element("summary", f"{label}: {run.folder.name}"), table)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names."""
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", ", ".join(map(str, value)) or "none"
        else:
            yield f"{prefix}{name}", str(value)


def _table(sheet: Sheet) -> Markup:
    """A sheet as HTML; neighbouring rows about one partner share its cell, which also says what it does."""
    behaviours = dict(zip(sheet.columns, zip(*sheet.rows, strict=True), strict=True)).get("Behaviour")
    rows = []
    described = list(zip(sheet.without("Behaviour").rows, behaviours or [""] * len(sheet.rows), strict=True))
    columns = sheet.without("Behaviour").columns
    for _, same in groupby(described, key=lambda row: row[0][0] if behaviours else id(row)):
        for index, (row, behaviour) in enumerate(members := list(same)):
            about = [element("small", behaviour)] if behaviour else []
            name = element("th", row[0], *about, scope="row", rowspan=str(len(members)) if len(members) > 1 else None)
            cells = [element("td", cell, class_=_align(column)) for column, cell in zip(columns, row, strict=True)]
            rows.append(element("tr", *([name] if index == 0 else []), *cells[1:]))
    head = [element("th", column, scope="col", class_=_align(column)) for column in columns]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll")


def _align(column: str) -> str | None:
    return None if column in NAMING else "number"


def _figure(svg: str, caption: str) -> Markup:
    return element("figure", Markup(svg), element("figcaption", caption))


def _reading_guide() -> Iterator[Markup]:
    yield element("h2", "How to read this")
    facts = [
        "Returns are undiscounted team returns of whole episodes with sampled actions.",
        "± is half of the 95 % interval of the mean by Student's t. Its unit is a training run: episodes of one run "
        "are not independent evidence about a method. It covers the differences between training runs and nothing "
        "else; with few runs it is wide, and it may reach beyond returns that are possible.",
        "The headline is the last checkpoint, fixed in advance. Where a best checkpoint is shown beside it, that one "
        "is, for each training run, the one of its highest return in training: what judges does not choose.",
        "Held-out partners are kept from training; training partners may have been met there. The two are never "
        "averaged together.",
        "A mean over partners weighs all partners alike, and the learner plays every seat equally often. The worst "
        "partner is picked for each training run on one half of the episodes and scored on the other, since a plain "
        "minimum of noisy means lies too low.",
        "Random and best script are what a player at random and the best of the scripted players get with the same "
        f"partner. {NOTHING} means not known.",
    ]
    yield element("ul", *(element("li", fact) for fact in facts))

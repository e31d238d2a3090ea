"""Elements of a web page, escaped by construction, and the one style of reports."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is HTML already; every other string is escaped where it enters an element."""


def element(name: str, /, *children: str, **attributes: str | None) -> Markup:
    """`<name attributes>children</name>`; a trailing _ of an attribute name is dropped, None leaves it out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("img", "meta"):
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{together(children)}</{name}>")


def together(parts: Iterable[str]) -> Markup:
    """Parts one after the other, those that are not `Markup` escaped."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def page(title: str, body: Iterable[str]) -> str:
    """A whole document without scripts that loads nothing from elsewhere."""
    head = together(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", title),
            element("style", Markup(_STYLE)),
        ]
    )
    whole = element("html", element("head", head), element("body", element("main", *body)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d1f24; --faint: #5d6370; --rule: #d9dce2;
  --panel: #f5f6f8; --warn: #8a4b00; --warn-paper: #fff4e0; --plot-grid: #d4d7de; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171b; --ink: #e6e8ec; --faint: #a0a6b2; --rule: #363a43;
  --panel: #1d2026; --warn: #ffc679; --warn-paper: #33270f; --plot-grid: #3b404a; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.35rem; margin: 2.8rem 0 .6rem; padding-bottom: .3rem; border-bottom: 2px solid var(--rule);
  overflow-wrap: anywhere; }
h3 { font-size: 1.08rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
p, ul { max-width: 48rem; }
.faint, figcaption, small { color: var(--faint); }
.note { background: var(--warn-paper); color: var(--warn); border-left: 4px solid currentColor;
  padding: .5rem .8rem; margin: .6rem 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .35rem .8rem .35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { color: var(--faint); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; min-width: 9rem; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; }
small { display: block; font-weight: 400; max-width: 19rem; }
figure { margin: 1rem 0; }
figcaption { font-size: .88rem; max-width: 48rem; overflow-wrap: anywhere; }
svg.plot { display: block; width: 100%; max-width: 46rem; height: auto; overflow: visible; }
.recordings { display: flex; flex-wrap: wrap; gap: 1.25rem; }
.recordings figure { width: 19rem; max-width: 100%; margin: .5rem 0; }
.recordings img { width: 100%; height: auto; border: 1px solid var(--rule); border-radius: 6px; }
details { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; padding: .5rem .9rem;
  margin: .6rem 0; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
details td { font-family: ui-monospace, monospace; font-size: .84rem; overflow-wrap: anywhere; }
"""

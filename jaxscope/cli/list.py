"""List environments, scripted partners, methods and language models: jaxscope list [envs|partners|methods|models]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro
from rich.table import Table

from jaxscope import registry
from jaxscope.agents import llm
from jaxscope.agents.llm.config import FAMILIES
from jaxscope.agents.scripted import description, partner_names, role
from jaxscope.cli._console import console
from jaxscope.make import ENVIRONMENTS, known_family, list_envs
from jaxscope.runs import settings as run_settings


@dataclass(frozen=True)
class Options:
    what: tyro.conf.Positional[Literal["all", "envs", "partners", "methods", "models"]] = "all"
    """What to list."""
    env: str | None = None
    """Only partners of this environment."""


def run(options: Options) -> None:
    families = _families(options.env)
    if options.what in ("all", "envs"):
        console().print(_envs())
    if options.what in ("all", "methods"):
        console().print(_methods())
    if options.what in ("all", "models"):
        console().print(_models())
    if options.what in ("all", "partners"):
        for name in families:
            console().print(_partners(name))


def _families(env: str | None) -> list[str]:
    """The environment families asked for."""
    return registry.names(ENVIRONMENTS) if env is None else [known_family(env)]


def _envs() -> Table:
    table = Table("environment", title="Environments (examples; most families parse any size)", title_justify="left")
    wrapped = [
        "discrete:pmr (and others of continuous actions)",
        "jaxmarl:MPE_simple_spread_v3 (and others of JaxMARL)",
    ]
    for name in [*list_envs(), *wrapped]:
        table.add_row(name)
    return table


def _methods() -> Table:
    table = Table("method", "what it does", title="Methods", title_justify="left")
    for name in run_settings.method_names():
        table.add_row(name, (run_settings.method(name).__doc__ or "").strip().splitlines()[0])
    return table


def _models() -> Table:
    title = "Language models (also: a folder, a .gguf file, organisation/name of the hub)"
    table = Table("model", "what it is", title=title, title_justify="left")
    for name, what in llm.names().items():
        table.add_row(name, what)
    families = ", ".join(registry.names(FAMILIES))
    table.add_row("", f"families: {families}")
    return table


def _partners(env_name: str) -> Table:
    table = Table("partner", "role", "behaviour", title=f"Scripted partners in {env_name}", title_justify="left")
    for name in partner_names(env_name):
        table.add_row(name, role(name, env_name), description(name, env_name))
    return table

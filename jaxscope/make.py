"""Environments by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxscope import registry
from jaxscope.types import Environment

ENVIRONMENTS = "jaxscope.envs"


def make(name: str, **options: Any) -> Environment:
    """The environment called `name`.

    Args:
        name: `family/variant`, e.g. `lbf/2s-8x8-2p-3f`, or `jaxmarl:NAME` for an environment of JaxMARL.
        options: settings that replace those of the name, e.g. `penalty=0.1`.

    Raises:
        ValueError: the name or an option does not exist; the message lists what there is.
    """
    if name.startswith("jaxmarl:"):
        from jaxscope.jaxmarl import from_jaxmarl

        return from_jaxmarl(name.removeprefix("jaxmarl:"), **options)
    family, slash, variant = name.partition("/")
    if family not in registry.names(ENVIRONMENTS):
        raise ValueError(registry.unknown("there is no environment", name, list_envs()))
    if not slash:
        raise ValueError(f"{family!r} needs a variant, for example {registry.load(ENVIRONMENTS, family).EXAMPLES[0]!r}")
    env = registry.load(ENVIRONMENTS, family).parse(variant)
    known = [field.name for field in dataclasses.fields(env)]
    for option in options:
        if option not in known:
            raise ValueError(registry.unknown(f"{family} has no option", option, known))
    return dataclasses.replace(env, **options)


def list_envs() -> list[str]:
    """Names that `make` takes, a few of every family: most families parse many more."""
    return [name for family in registry.names(ENVIRONMENTS) for name in registry.load(ENVIRONMENTS, family).EXAMPLES]

"""Environments by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxscope import options_in_names, registry
from jaxscope.agents.scripted import family, partner_names
from jaxscope.discrete import PREFIX, discrete
from jaxscope.types import Environment

ENVIRONMENTS = "jaxscope.envs"


def make(name: str, **options: Any) -> Environment:
    """The environment called `name`.

    Args:
        name: `family/variant`, e.g. `lbf/2s-8x8-2p-3f`, or just `family` (with `?option=value`, if any) where there is
            a default; or `jaxmarl:NAME` for an environment of JaxMARL. In a family, a hyphen stands for an underscore.
            `discrete:` before the name of an environment of continuous actions gives it discrete ones.
        options: settings that replace those of the name, e.g. `penalty=0.1`.

    Raises:
        ValueError: the name or an option does not exist; the message lists what there is.
    """
    if name.startswith(PREFIX):
        return discrete(make(name.removeprefix(PREFIX), **options))
    if name.startswith("jaxmarl:"):
        from jaxscope.jaxmarl import from_jaxmarl

        return from_jaxmarl(name.removeprefix("jaxmarl:"), **options)
    of, variant = _split(name)
    if of not in registry.names(ENVIRONMENTS):
        raise ValueError(registry.unknown("there is no environment", name, list_envs()))
    module = registry.load(ENVIRONMENTS, of)
    try:
        env = module.parse(variant)
    except ValueError as error:
        if variant:
            raise
        raise ValueError(f"{of!r} needs a variant, for example {module.EXAMPLES[0]!r}") from error
    # A family whose settings stand in for each other says what replacing one means.
    replace = getattr(module, "replaced", dataclasses.replace)
    return replace(env, **options_in_names.check(options, type(env), of))


def _split(name: str) -> tuple[str, str]:
    """Family and variant; a variant may be options alone, which begin with `?`."""
    end = min((name.index(mark) for mark in "/?" if mark in name), default=len(name))
    return name[:end].replace("-", "_"), name[end:].removeprefix("/")


def list_envs() -> list[str]:
    """Names that `make` takes, a few of every family: most families parse many more."""
    return [name for of in registry.names(ENVIRONMENTS) for name in registry.load(ENVIRONMENTS, of).EXAMPLES]


def list_partners(env_name: str, role: str | None = None) -> list[str]:
    """Names of the scripted partners of an environment or a family.

    Args:
        env_name: `lbf/8x8-2p-3f`, `lbf`, of JaxMARL's `jaxmarl:NAME`, or `discrete:NAME`. The last two have those
            partners alone that play anything: scripts of an environment act with its own actions.
        role: only `training` partners, `held-out` ones (never met in training), or `bound`s (reference points).

    Raises:
        ValueError: there is no such environment or role; the message lists what there is.
    """
    return partner_names(known_family(env_name), role)


def known_family(env_name: str) -> str:
    """The family of an environment's name, as its file is called.

    Raises:
        ValueError: there is none.
    """
    if env_name.startswith(PREFIX):
        known_family(env_name.removeprefix(PREFIX))
        return family(env_name)
    name = family(env_name)
    if name not in [*registry.names(ENVIRONMENTS), "jaxmarl"]:
        raise ValueError(registry.unknown("there is no environment", env_name, list_envs()))
    return name

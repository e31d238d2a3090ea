"""Panels: named members with their policies and parameters, as evaluation and training meet them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.scripted import partner
from jaxscope.population import Population
from jaxscope.types import Environment, Policy, PyTree


@dataclass(frozen=True)
class Panel:
    """Members of one population by name."""

    names: tuple[str, ...]  # [K]
    policies: tuple[Policy, ...]  # one per kind of the population
    population: Population

    def __post_init__(self) -> None:
        if len(self.names) != self.population.capacity:
            raise ValueError(f"{len(self.names)} names for {self.population.capacity} members")
        if len(self.policies) != len(self.population.sizes):
            raise ValueError(f"{len(self.policies)} policies for {len(self.population.sizes)} kinds")

    @classmethod
    def scripted(cls, env: Environment, names: Sequence[str]) -> Panel:
        """The scripted partners `names` of `env`.

        Raises:
            ValueError: a name does not exist, or there is none.
        """
        policies = tuple(partner(name, env) for name in names)
        plain = tuple(name.replace("_", "-") for name in names)
        return cls(plain, policies, Population.scripted(len(policies)))

    @classmethod
    def learned(cls, policy: Policy, params: PyTree, names: Sequence[str]) -> Panel:
        """Members of one architecture; `params` has a leading member axis as long as `names`."""
        return cls(tuple(names), (policy,), Population.stacked(params, len(names)))


def join(*panels: Panel) -> Panel:
    """One panel of all members, those of one learned architecture made one kind; names must differ."""
    parts = [part for panel in panels for part in _by_kind(panel)]
    kinds: list[tuple[Policy, list[str], PyTree]] = []
    for policy, names, params in parts:
        for index, (known, known_names, known_params) in enumerate(kinds):
            if known == policy and jax.tree.leaves(params):
                both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), known_params, params)
                kinds[index] = (known, known_names + names, both)
                break
        else:
            kinds.append((policy, names, params))
    names = tuple(name for _, of_kind, _ in kinds for name in of_kind)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"two members are called {repeated[0]!r}")
    populations = [_population(of_kind, params) for _, of_kind, params in kinds]
    return Panel(names, tuple(policy for policy, _, _ in kinds), Population.join(*populations))


def subset(panel: Panel, members: Sequence[int]) -> Panel:
    """The given members of a panel, ids in ascending order."""
    start, parts = 0, []
    for policy, size, params in zip(panel.policies, panel.population.sizes, panel.population.members, strict=True):
        here = np.asarray([m - start for m in members if start <= m < start + size], int)
        names = tuple(panel.names[start + index] for index in here)
        if here.size and jax.tree.leaves(params):
            parts.append(Panel.learned(policy, jax.tree.map(lambda leaf: leaf[here], params), names))  # noqa: B023
        elif here.size:
            parts.append(Panel(names, (policy,), Population.scripted(1)))
        start += size
    return join(*parts)


def _by_kind(panel: Panel):
    start = 0
    for policy, size, params in zip(panel.policies, panel.population.sizes, panel.population.members, strict=True):
        yield policy, list(panel.names[start : start + size]), params
        start += size


def _population(names: list[str], params: PyTree) -> Population:
    if not jax.tree.leaves(params):
        return Population.scripted(len(names))
    return Population.stacked(params, len(names))

"""Panels: named members with their policies and parameters, as evaluation and training meet them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.scripted import partner
from jaxscope.agents.scripted_group import grouped, scripts
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
        """The scripted partners `names` of `env`, at least one; together they are one kind.

        Raises:
            ValueError: a name does not exist.
        """
        policy, params = grouped([partner(name, env) for name in names])
        plain = tuple(name.replace("_", "-") for name in names)
        return cls(plain, (policy,), Population.stacked(params, len(names)))

    @classmethod
    def learned(cls, policy: Policy, params: PyTree, names: Sequence[str]) -> Panel:
        """Members of one architecture; `params` has a leading member axis as long as `names`."""
        return cls(tuple(names), (policy,), Population.stacked(params, len(names)))


class _Kind(NamedTuple):
    """Members of one policy."""

    policy: Policy
    names: tuple[str, ...]
    params: PyTree  # leaves [K, ...]


def join(*panels: Panel) -> Panel:
    """One panel of all members; those of one learned architecture become one kind, and so do the scripts of one
    environment. Names must differ."""
    kinds: list[_Kind] = []
    for part in (kind for panel in panels for kind in _kinds(panel)):
        for index, known in enumerate(kinds):
            both = _merged(known, part)
            if both is not None:
                kinds[index] = both
                break
        else:
            kinds.append(part)
    names = tuple(name for kind in kinds for name in kind.names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"two members are called {repeated[0]!r}")
    populations = [Population.stacked(kind.params, len(kind.names)) for kind in kinds]
    return Panel(names, tuple(kind.policy for kind in kinds), Population.join(*populations))


def subset(panel: Panel, members: Sequence[int]) -> Panel:
    """The given members of a panel, ids in ascending order."""
    start, parts = 0, []
    for kind in _kinds(panel):
        size = len(kind.names)
        here = sorted(member - start for member in members if start <= member < start + size)
        if here:
            parts.append(_some(kind, here))
        start += size
    return join(*(Panel(p.names, (p.policy,), Population.stacked(p.params, len(p.names))) for p in parts))


def _kinds(panel: Panel) -> Iterator[_Kind]:
    start = 0
    for policy, size, params in zip(panel.policies, panel.population.sizes, panel.population.members, strict=True):
        yield _Kind(policy, panel.names[start : start + size], params)
        start += size


def _merged(a: _Kind, b: _Kind) -> _Kind | None:
    """Both as one kind, if they can be."""
    names = a.names + b.names
    of_a, of_b = scripts(a.policy, a.params, len(a.names)), scripts(b.policy, b.params, len(b.names))
    if of_a and of_b and of_a[0].env == of_b[0].env:
        policy, params = grouped(of_a + of_b)
        return _Kind(policy, names, params)
    if a.policy == b.policy:
        return _Kind(a.policy, names, jax.tree.map(lambda x, y: jnp.concatenate([x, y]), a.params, b.params))
    return None


def _some(kind: _Kind, rows: Sequence[int]) -> _Kind:
    """Some members of a kind; of scripts no others are kept."""
    names = tuple(kind.names[row] for row in rows)
    of_kind = scripts(kind.policy, kind.params, len(kind.names))
    if of_kind:
        policy, params = grouped([of_kind[row] for row in rows])
        return _Kind(policy, names, params)
    return _Kind(kind.policy, names, jax.tree.map(lambda leaf: leaf[np.asarray(rows)], kind.params))

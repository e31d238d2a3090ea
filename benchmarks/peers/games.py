"""Games that reset themselves, many at once, as a training peer meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

View = Shaped[Array, "N O"]


class Games(NamedTuple):
    """`num_envs` games of one kind. Rows N are the agents of all games, in an order of the games' own.

    `reset(key) -> (state, view)` and `step(key, state, actions) -> (state, view, reward, done)`; a view after `done`
    is the first of a fresh game.
    """

    name: str
    num_envs: int
    num_agents: int
    num_actions: int
    reset: Callable[[PRNGKeyArray], tuple[Any, View]]
    step: Callable[[PRNGKeyArray, Any, Int[Array, " N"]], tuple[Any, View, Float[Array, " N"], Bool[Array, " N"]]]

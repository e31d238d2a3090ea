"""Random actions in many environments at once: one driver for every contender, so that only the environments differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from benchmarks.timing import Contender

#: A call does at least this many joint steps, so that it takes long enough to time.
STEPS_PER_CALL = 131_072

Reset = Callable[[PRNGKeyArray], tuple[Any, Any]]
Step = Callable[[PRNGKeyArray, Any, Shaped[Array, "B A *a"]], tuple[Any, Any, Array]]
#: Draws the actions of one step: a key and the shape `(B, A)` give `[B, A, *a]`.
Sampler = Callable[[PRNGKeyArray, tuple[int, int]], Shaped[Array, "B A *a"]]


def integers(num_actions: int) -> Sampler:
    """Uniform draws of 0 .. num_actions - 1."""
    return lambda key, shape: jax.random.randint(key, shape, 0, num_actions)


def reals(size: int, low: float, high: float) -> Sampler:
    """Uniform draws of vectors of `size` numbers in [low, high)."""
    return lambda key, shape: jax.random.uniform(key, (*shape, size), minval=low, maxval=high)


def random_play(
    name: str,
    reset: Reset,
    step: Step,
    num_envs: int,
    num_agents: int,
    sampler: Sampler,
    num_steps: int | None = None,
    seed: int = 0,
) -> Contender:
    """A contender that plays `num_envs` auto-resetting environments with actions of `sampler`, under one `lax.scan`.

    `reset(key) -> (state, observations)` and `step(key, state, actions) -> (state, observations, rewards)` are for the
    whole batch; one key serves both, so an environment that wants a key a game splits it, at its own cost. The states
    live on from call to call, so episodes are as staggered as in training.

    A policy would read all observations from memory. So each step here sums those of the step before: XLA can neither
    drop them nor melt them into their consumer, and the cost is that of reading them once.

    Raises:
        ValueError: when a size is below 1.
    """
    if num_steps is None:
        num_steps = max(1, STEPS_PER_CALL // max(1, num_envs))
    sizes = {"num_envs": num_envs, "num_agents": num_agents, "num_steps": num_steps}
    if min(sizes.values()) < 1:
        raise ValueError(f"sizes must be 1 or more, got {sizes}")

    def body(carry: tuple, _: None) -> tuple[tuple, None]:
        key, state, observations, total = carry
        key, action_key, step_key = jax.random.split(key, 3)
        actions = sampler(action_key, (num_envs, num_agents))
        total += _checksum(observations)
        state, observations, rewards = step(step_key, state, actions)
        return (key, state, observations, total + rewards.sum()), None

    @jax.jit
    def play(carry: tuple) -> tuple:
        return jax.lax.scan(body, carry, length=num_steps)[0]

    @jax.jit
    def start() -> tuple:
        key, reset_key = jax.random.split(jax.random.key(seed))
        return key, *reset(reset_key), jnp.zeros(())

    carry = None

    def run() -> Array:
        nonlocal carry
        carry = play(start() if carry is None else carry)
        return carry[-1]

    return Contender(name, run, num_envs * num_steps)


def _checksum(observations: Any) -> Float[Array, ""]:
    return sum((jnp.sum(leaf, dtype=jnp.float32) for leaf in jax.tree.leaves(observations)), jnp.zeros(()))

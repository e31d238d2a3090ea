"""Play a game yourself, with a partner: jaxscope play ENV --partner NAME.

Arrow keys move; the line under the picture shows the other keys. Each key is one step of the game, and Escape ends it.
The episode is kept in a file: `jaxscope play --replay FILE` shows it again, step by step.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from jaxscope.agents.scripted import ROLES
from jaxscope.cli import _screen
from jaxscope.evaluation.episode import Episode, first_state, named_actions, replay, step_key
from jaxscope.files import file_name
from jaxscope.make import make
from jaxscope.panel import Panel
from jaxscope.runs import panels
from jaxscope.types import Environment, Playable, Renders, View


@dataclass(frozen=True)
class Options:
    env: tyro.conf.Positional[str] = ""
    """Environment, for example overcooked/cramped_room."""
    partner: str = "random"
    """Who has the other seats: a scripted partner, or the folder of a run (with a / in it), whose first seed plays."""
    seat: int = 0
    """Your seat."""
    seed: int = 0
    """Root of the game's randomness."""
    out: Path | None = None
    """File for the episode; by default runs/played-ENV-PARTNER-SEED.json, numbered if need be."""
    replay: Path | None = None
    """Show the episode in this file instead."""


def run(options: Options) -> None:
    if options.replay is not None:
        _show(Episode.load(options.replay))
        return
    if not options.env:
        raise ValueError("name an environment to play, for example overcooked/cramped_room")
    env = make(options.env)
    if not isinstance(env, Playable):
        lacks = "names no keys for its actions" if isinstance(env, Renders) else "has no method render(state)"
        raise ValueError(f"{env.name} cannot be played: it {lacks}")
    if not 0 <= options.seat < env.num_agents:
        raise ValueError(f"seat = {options.seat}: {env.name} has the seats 0 to {env.num_agents - 1}")
    if options.partner in ROLES:
        raise ValueError(f"partner = {options.partner!r} is a group of partners; name one of them, or a run's folder")
    if not 0 <= options.seed < 2**32:
        raise ValueError(f"seed = {options.seed}: must lie in [0, 2**32)")
    panel = panels.resolve([options.partner], env)
    path = options.out or _free(Path("runs"), f"played-{env.name}-{panel.names[0]}-{options.seed}")
    if path.exists():
        raise ValueError(f"{path} exists already; choose another file with --out, or remove it")
    with _screen.full_screen():
        episode = _play(env, panel, options.seat, options.seed)
    if not episode.actions:
        print("no step was taken")
        return
    episode.save(path)
    print(f"return {episode.team_return:g} in {len(episode.actions)} steps: {path}")


def _play(env: Any, panel: Panel, seat: int, seed: int) -> Episode:
    """The episode that the person at the keyboard plays, to its end or Escape."""
    memory, act = _partner(env, panel)
    partner_key = jax.random.fold_in(jax.random.key(seed), 2)
    step = jax.jit(env.step_env)
    obs, state = first_state(env, seed)
    names = [panel.names[0]] * env.num_agents
    names[seat] = "you"
    total, taken, over = 0.0, [], False
    while not over:
        _screen.draw(env.render(state), _captions(env, seat, len(taken), total))
        key = _screen.read_key()
        if key == "escape":
            break
        if key not in env.keys:
            continue
        actions, memory = act(memory, obs, state, jax.random.fold_in(partner_key, len(taken)))
        row = [int(action) for action in actions]
        row[seat] = env.keys[key]
        obs, state, rewards, dones, _ = step(step_key(seed, len(taken)), state, named_actions(env, row))
        total += float(env.team_reward(rewards))
        taken.append(tuple(row))
        over = bool(dones["__all__"])
    if over:
        _screen.draw(env.render(state), [*_captions(env, seat, len(taken), total)[:1], "the game is over: any key"])
        _screen.read_key()
    return Episode(env.name, seed, tuple(names), tuple(taken), total)


def _partner(env: Environment, panel: Panel) -> tuple[Any, Callable]:
    """The first member of a panel in every seat: memories `[A, ...]` and a function that gives actions `[A]`.

    It acts in the person's seat too, where nobody follows it: so one function serves every seat.
    """
    policy, params = panel.policies[0], panel.population.gather(jnp.int32(0))
    start = policy.initial_memory(params)
    memory = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (env.num_agents, *jnp.shape(leaf))), start)

    @jax.jit
    def act(memory, obs, state, key):
        views = View(jnp.stack([obs[agent] for agent in env.agents]), state, jnp.arange(env.num_agents))
        by_seat: Any = View(0, None, 0)  # type: ignore[arg-type]  # axes
        keys = jax.random.split(key, env.num_agents)
        return jax.vmap(functools.partial(policy.act, params), in_axes=(0, by_seat, 0))(memory, views, keys)

    return memory, act


def _captions(env: Any, seat: int, steps: int, total: float) -> list[str]:
    keys = ", ".join(f"{key}: {name}" for key, name in _other_keys(env))
    return [
        f"step {steps} of {env.horizon}   return {total:g}   you are seat {seat}",
        f"arrows: move, {keys}, escape: end",
    ]


def _other_keys(env: Any) -> list[tuple[str, str]]:
    arrows = ("up", "down", "left", "right")
    return [(key, env.key_names[action]) for key, action in env.keys.items() if key not in arrows]


def _show(episode: Episode) -> None:
    """An episode step by step: any key goes on, left goes back."""
    env, states, rewards = replay(episode)
    if not isinstance(env, Playable):
        raise ValueError(f"{env.name} cannot be shown: it has no picture")
    so_far = np.concatenate([[0.0], np.cumsum(rewards)])
    time = 0
    with _screen.full_screen():
        while True:
            words = f"step {time} of {len(rewards)}   return {so_far[time]:g}   {_who(episode.seats)}"
            _screen.draw(env.render(states[time]), [words, "left: back, escape: end, any other key: on"])
            key = _screen.read_key()
            if key == "escape" or (time == len(rewards) and key != "left"):
                break
            time = max(time - 1, 0) if key == "left" else time + 1
    print(f"{_who(episode.seats)}: return {so_far[-1]:g} in {len(rewards)} steps")


def _who(seats: Sequence[str]) -> str:
    return ", ".join(f"{name} in seat {seat}" for seat, name in enumerate(seats))


def _free(folder: Path, name: str) -> Path:
    """A file in `folder` that does not exist yet."""
    plain = file_name(name, keep="-._")[:100]
    names = itertools.chain([plain], (f"{plain}-{number}" for number in itertools.count(2)))
    return next(path for path in (folder / f"{name}.json" for name in names) if not path.exists())

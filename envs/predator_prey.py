"""Predator-Prey: two predators catch rabbits, which one of them can, and stags, which take both at once.

The game of PopGen (Teiletche et al.; appendix A.1): its source says two predators with continuous actions and partial
observations, three rabbits for 0.5 each and two stags for 2, and prey that follow fixed policies. Bodies, starts,
capture and the prey's policy are those of the predator-prey game in Macop (Yuan et al., 2023), a particle environment;
what neither says is our choice and marked so. Physics: `_point_mass`, as mpe2 computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from jaxscope import options_in_names
from jaxscope.spaces import Box
from jaxscope.types import Actions, Environment, Observations

from . import _predator_prey_render
from ._point_mass import (
    TINY,
    Body,
    Physics,
    Vector,
    at_rest,
    choose,
    contacts,
    distance,
    moved,
    on_circle,
    thrust,
)

EXAMPLES = ("predator_prey", "predator_prey?sight=inf")


class State(NamedTuple):
    """One game. Prey are numbered counter-clockwise by where they start, from the east."""

    predators: tuple[Body, Body]
    prey: tuple[Body, ...]  # P of them; caught ones stay where they were caught, at rest
    stag: tuple[Bool[Array, ""], ...]  # P; else a rabbit
    alive: tuple[Bool[Array, ""], ...]  # P; not caught
    time: Int[Array, ""]  # steps taken


@dataclass(frozen=True)
class PredatorPrey(Environment):
    """The hunting game; an action is a thrust (east, north) with each axis in [-1, 1], clipped to that.

    A prey is caught when a predator's centre is nearer than `capture_distance` to its own after a step: a rabbit by one
    predator or both, a stag only by both after the same step. It pays once, and is gone. Every agent is paid the whole
    team reward. A game ends (`terminated`) when all prey are caught.

    Prey flee: with a predator within `prey_sight`, at full thrust straight away from the nearest one, but back inside
    on any axis on which they are farther than `arena` from the middle; else they drift to a halt. All bodies collide;
    caught prey are no bodies any more. The plane has no walls.

    Observation, `float32[9 + 7 P]`: own velocity, own position; the teammate from here, its velocity, 1 if it is
    visible; for each prey in turn the prey from here, its velocity, 1 if a rabbit, 1 if a stag, 1 if it is visible and
    alive; x before y. What is not visible (nearer than `sight`) or caught is all zeros.

    Args:
        horizon: steps after which a game is truncated. Macop: 25.
        num_rabbits, num_stags: PopGen: 3 and 2. They start evenly on a circle, kinds shuffled by every reset (the
            shuffle is our choice).
        rabbit_reward, stag_reward: of the team. PopGen.
        sight: how far predators see, by centres. FACMAC's 1.5 (Peng et al., 2021); `inf` shows everything.
        capture_distance: Macop: twice the distance of touching.
        start_range: predators start at rest, uniform in [-start_range, start_range] on both axes. Macop.
        start_radius: of the circle on which prey start, at rest. Macop.
        predator_size, predator_accel, predator_max_speed: radius, force of full thrust on one axis, greatest speed.
            The particle environments' adversaries.
        prey_size, prey_accel, prey_max_speed: Macop's slow prey; full thrust of prey is in one direction.
        prey_sight: Macop.
        arena: see above. Macop.
        dt, damping, contact_force, contact_margin: see `_point_mass.Physics`.

    Raises:
        ValueError: a setting is impossible; the message says which and what is allowed.
    """

    horizon: int = 25
    num_rabbits: int = 3
    num_stags: int = 2
    rabbit_reward: float = 0.5
    stag_reward: float = 2.0
    sight: float = 1.5
    capture_distance: float = 0.25
    start_range: float = 0.1
    start_radius: float = 1.0
    predator_size: float = 0.075
    predator_accel: float = 3.0
    predator_max_speed: float = 1.0
    prey_size: float = 0.05
    prey_accel: float = 1.5
    prey_max_speed: float = 0.3
    prey_sight: float = 0.5
    arena: float = 1.0
    dt: float = Physics.dt
    damping: float = Physics.damping
    contact_force: float = Physics.contact_force
    contact_margin: float = Physics.contact_margin

    num_agents = 2
    shared_reward = True

    def __post_init__(self) -> None:
        for broken, problem in self._rules():
            if broken:
                raise ValueError(f"predator_prey: {problem}")

    def _rules(self) -> list[tuple[bool, str]]:
        positive = ("horizon", "capture_distance", "start_radius", "predator_size", "predator_max_speed", "prey_size")
        positive += ("prey_max_speed", "dt", "contact_margin")
        none_negative = ("start_range", "predator_accel", "prey_accel", "prey_sight", "arena", "contact_force")
        values = {name: getattr(self, name) for name in (*positive, *none_negative)}
        return [
            *((not 0 < values[n] < math.inf, f"{n} = {values[n]} must be positive and finite") for n in positive),
            *((not 0 <= values[n] < math.inf, f"{n} = {values[n]} must be finite, at least 0") for n in none_negative),
            (self.num_rabbits < 0, f"num_rabbits = {self.num_rabbits} must be at least 0"),
            (self.num_stags < 0, f"num_stags = {self.num_stags} must be at least 0"),
            (self.num_prey < 1, "num_rabbits + num_stags = 0 must be at least 1"),
            (not self.sight > 0, f"sight = {self.sight} must be positive"),
            (not 0 <= self.damping <= 1, f"damping = {self.damping} must be from 0 to 1"),
            *(
                (not math.isfinite(getattr(self, name)), f"{name} = {getattr(self, name)} must be finite")
                for name in ("rabbit_reward", "stag_reward")
            ),
        ]

    @property
    def name(self) -> str:
        return options_in_names.compose("predator_prey", options_in_names.changed(self))

    @property
    def num_prey(self) -> int:
        return self.num_rabbits + self.num_stags

    @property
    def physics(self) -> Physics:
        return Physics(self.dt, self.damping, self.contact_force, self.contact_margin)

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        farthest = self.start_range + self.horizon * self.dt * self.predator_max_speed
        prey = self.start_radius + self.horizon * self.dt * self.prey_max_speed
        seen = min(self.sight, farthest + max(farthest, prey))
        bound = 1.001 * max(1.0, farthest, seen, self.predator_max_speed, self.prey_max_speed)  # room for rounding
        return Box(-bound, bound, (9 + 7 * self.num_prey,))

    def action_space(self, agent: str | None = None) -> Box:
        del agent
        return Box(-1.0, 1.0, (2,))

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        """Predators near the middle, prey around them, kinds shuffled."""
        drawn = jax.random.uniform(key, (5,))
        start = self.start_range * (2 * drawn[:4] - 1)
        state = State(
            predators=(at_rest(start[0], start[1]), at_rest(start[2], start[3])),
            prey=tuple(at_rest(x, y) for x, y in on_circle(self.num_prey, self.start_radius)),
            stag=self._kinds(drawn[4]),
            alive=(jnp.ones((), bool),) * self.num_prey,
            time=jnp.int32(0),
        )
        return self.get_obs(state), state

    def _kinds(self, lot: Float[Array, ""]) -> tuple[Bool[Array, ""], ...]:
        """Which prey are stags, every choice equally likely: one uniform number in [0, 1) decides about all.

        In turn each prey is a stag with the share of stags among those left; what is left of the number decides on.
        """
        stags, kinds = jnp.float32(self.num_stags), []
        for left in range(self.num_prey, 0, -1):
            share = stags / left
            is_stag = (lot < share) | (stags >= left)  # rounding must not lose the last ones
            lot = jnp.where(is_stag, lot / jnp.maximum(share, TINY), (lot - share) / jnp.maximum(1 - share, TINY))
            stags = stags - is_stag
            kinds.append(is_stag)
        return tuple(kinds)

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        """One step; the game is deterministic and `key` unused.

        Events, counts per agent: `rabbit_caught_alone`; `rabbit_caught_jointly` (the teammate was near enough too, and
        counts it as well); `stag_caught` (both agents count it); `stag_held` (it was near enough to living stags, and
        the teammate was not). The team's reward is `rabbit_reward` times the rabbits that either agent caught alone and
        those that both caught, plus `stag_reward` times the stags.
        """
        del key
        thrusts = [thrust(actions[agent], self.predator_accel) for agent in self.agents]
        before, state = state, self._moved(state, thrusts)
        near = [[distance(p, prey) < self.capture_distance for prey in state.prey] for p in state.predators]
        caught = [
            alive & jnp.where(stag, one & two, one | two)
            for alive, stag, one, two in zip(before.alive, before.stag, *near, strict=True)
        ]
        state = state._replace(
            prey=tuple(_halted(gone, body) for gone, body in zip(caught, state.prey, strict=True)),
            alive=tuple(alive & ~gone for alive, gone in zip(before.alive, caught, strict=True)),
        )
        events = self._events(before, near, caught)
        rabbits = events["rabbit_caught_alone"].sum() + events["rabbit_caught_jointly"][0]
        stags = events["stag_caught"][0]
        reward = jnp.float32(self.rabbit_reward) * rabbits + jnp.float32(self.stag_reward) * stags
        terminated = ~_any(state.alive)
        truncated = ~terminated & (state.time >= self.horizon)
        done = terminated | truncated
        obs = self.get_obs(state)
        info = {"terminated": terminated, "truncated": truncated, "final_observation": obs, "events": events}
        dones = {**dict.fromkeys(self.agents, done), "__all__": done}
        return obs, state, dict.fromkeys(self.agents, reward), dones, info

    def _moved(self, state: State, thrusts: list[Vector]) -> State:
        """All bodies one step later; nothing is caught yet."""
        bodies = (*state.predators, *state.prey)
        sizes = (self.predator_size,) * self.num_agents + (self.prey_size,) * self.num_prey
        speeds = (self.predator_max_speed,) * self.num_agents + (self.prey_max_speed,) * self.num_prey
        present = ((jnp.ones((), bool),) * self.num_agents) + state.alive
        own = [*thrusts, *(self._flight(prey, state.predators) for prey in state.prey)]
        pushes = contacts(self.physics, bodies, sizes, present)
        after = [
            choose(here, moved(self.physics, body, Vector(a.x + b.x, a.y + b.y), speed), body)
            for here, body, a, b, speed in zip(present, bodies, own, pushes, speeds, strict=True)
        ]
        first, second, *prey = after
        return state._replace(predators=(first, second), prey=tuple(prey), time=state.time + 1)

    def _flight(self, prey: Body, predators: tuple[Body, Body]) -> Vector:
        """The force with which a prey flees."""
        apart = [distance(predator, prey) for predator in predators]
        from_first = apart[0] <= apart[1]
        near = jnp.minimum(*apart)
        x = prey.x - jnp.where(from_first, predators[0].x, predators[1].x)
        y = prey.y - jnp.where(from_first, predators[0].y, predators[1].y)
        # Made a unit vector first: what is put in for an axis outside has length 1 too, and the two then mix evenly.
        x, y = x / jnp.maximum(near, TINY), y / jnp.maximum(near, TINY)
        x = jnp.where(jnp.abs(prey.x) > self.arena, -jnp.sign(prey.x), x)
        y = jnp.where(jnp.abs(prey.y) > self.arena, -jnp.sign(prey.y), y)
        force = jnp.where(near < self.prey_sight, self.prey_accel / jnp.maximum(jnp.sqrt(x * x + y * y), TINY), 0.0)
        return Vector(force * x, force * y)

    def _events(self, before: State, near: list[list[Array]], caught: list[Array]) -> dict[str, Int[Array, " A"]]:
        """Counts from who was near enough to which prey, and which were caught."""
        one, two = near
        rabbit = [gone & ~stag for gone, stag in zip(caught, before.stag, strict=True)]
        living = [alive & stag for alive, stag in zip(before.alive, before.stag, strict=True)]
        stags = _count([gone & stag for gone, stag in zip(caught, before.stag, strict=True)])
        jointly = _count([r & a & b for r, a, b in zip(rabbit, one, two, strict=True)])
        by_first, by_second = ([a & ~b for a, b in zip(*pair, strict=True)] for pair in ((one, two), (two, one)))
        own = {
            name: jnp.stack([_count([p & n for p, n in zip(prey, by, strict=True)]) for by in (by_first, by_second)])
            for name, prey in (("rabbit_caught_alone", rabbit), ("stag_held", living))
        }
        both = {"rabbit_caught_jointly": jointly, "stag_caught": stags}
        return own | {name: jnp.stack([count, count]) for name, count in both.items()}

    def get_obs(self, state: State) -> Observations:
        pairs = zip(state.predators, state.predators[::-1], strict=True)
        return {agent: self._shown(state, own, mate) for agent, (own, mate) in zip(self.agents, pairs, strict=True)}

    def _shown(self, state: State, own: Body, mate: Body) -> Float[Array, " o"]:
        numbers = [own.vx, own.vy, own.x, own.y]
        visible = self.sees(own, mate)
        numbers += [jnp.where(visible, value, 0.0) for value in (*_seen_from(own, mate), 1.0)]
        for prey, stag, alive in zip(state.prey, state.stag, state.alive, strict=True):
            visible = alive & self.sees(own, prey)
            kinds = (~stag).astype(jnp.float32), stag.astype(jnp.float32)
            numbers += [jnp.where(visible, value, 0.0) for value in (*_seen_from(own, prey), *kinds, 1.0)]
        return jnp.stack(numbers)

    def sees(self, own: Body, other: Body) -> Bool[Array, ""]:
        """Whether a predator's eyes reach as far."""
        return distance(own, other) < self.sight

    def render(self, state: State) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of one game: predators by colour with their sight, prey as rabbits and stags, caught ones gone."""
        return _predator_prey_render.picture(self, state)


def _halted(gone: Bool[Array, ""], body: Body) -> Body:
    """The body at rest if it is gone."""
    return body._replace(vx=jnp.where(gone, 0.0, body.vx), vy=jnp.where(gone, 0.0, body.vy))


def _seen_from(own: Body, other: Body) -> tuple[Array, Array, Array, Array]:
    return other.x - own.x, other.y - own.y, other.vx, other.vy


def _count(flags: list[Array]) -> Int[Array, ""]:
    total = jnp.zeros((), jnp.int32)
    for flag in flags:
        total = total + flag
    return total


def _any(flags: tuple[Array, ...]) -> Bool[Array, ""]:
    found = flags[0]
    for flag in flags[1:]:
        found = found | flag
    return found


def parse(variant: str) -> PredatorPrey:
    """The game of a name without its family: nothing, or settings such as `?sight=inf&horizon=50`.

    Raises:
        ValueError: there is no such setting, or something else stands there.
    """
    first, options = options_in_names.read(variant)
    if first:
        raise ValueError(f"predator_prey has no variant {first!r}; write predator_prey, or predator_prey?horizon=50")
    return PredatorPrey(**options_in_names.check(options, PredatorPrey, "predator_prey"))

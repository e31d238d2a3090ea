"""Point-Mass Rendezvous: two agents meet at one of four landmarks, each as good as the others.

The game of PopGen (Teiletche et al.; appendix A.1): its source says two point masses with continuous actions, four
landmarks evenly on a circle, everything visible, and a team reward of 2 for meeting at one landmark. Sizes and physics
are those of the rendezvous in LIPO (Charakorn et al., 2023), a particle environment; what neither says is our choice
and marked so. Physics: `_point_mass`, as mpe2 computes it.
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

from . import _pmr_render
from ._point_mass import Body, Physics, Vector, at_rest, distance, moved, on_circle, thrust

#: The landmarks, counter-clockwise from the east.
LANDMARKS = ("east", "north", "west", "south")
EXAMPLES = ("pmr", "pmr?horizon=30")


class State(NamedTuple):
    """One game. Landmarks never move; `PMR.landmarks` says where they are."""

    agents: tuple[Body, Body]
    time: Int[Array, ""]  # steps taken


@dataclass(frozen=True)
class PMR(Environment):
    """The rendezvous game; an action is a thrust (east, north) with each axis in [-1, 1], clipped to that.

    The game ends (`terminated`) with the first step after which both agents are nearer than `reach` to the same
    landmark; the team is then paid `meeting_reward`, half of it to each agent. Nothing else is paid.

    Observation, `float32[16]`: own velocity, own position, the four landmarks from here (east, north, west, south), the
    teammate from here, its velocity; x before y.

    Args:
        horizon: steps after which a game is truncated. LIPO: 50.
        circle_radius: of the circle of landmarks. Our choice; LIPO's 2.25 leaves random play without any reward.
        start_range: agents start at rest, uniform in [-start_range, start_range] on both axes. Our choice.
        agent_size, landmark_size: radii; `reach` is their sum. LIPO.
        meeting_reward: of the team. PopGen.
        accel: force of full thrust on one axis. The particle environments' 5.
        dt, damping: see `_point_mass.Physics`.

    Raises:
        ValueError: a setting is impossible; the message says which and what is allowed.
    """

    horizon: int = 50
    circle_radius: float = 1.0
    start_range: float = 0.5
    agent_size: float = 0.15
    landmark_size: float = 0.2
    meeting_reward: float = 2.0
    accel: float = 5.0
    dt: float = Physics.dt
    damping: float = Physics.damping

    num_agents = 2
    outcomes = tuple(f"met_{name}" for name in LANDMARKS)

    def __post_init__(self) -> None:
        positive = ("horizon", "circle_radius", "agent_size", "landmark_size", "accel", "dt")
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"pmr: {name} = {getattr(self, name)} must be positive and finite")
        if not 0 <= self.start_range < math.inf:
            raise ValueError(f"pmr: start_range = {self.start_range} must be finite and not negative")
        if not math.isfinite(self.meeting_reward):
            raise ValueError(f"pmr: meeting_reward = {self.meeting_reward} must be finite")
        if not 0 < self.damping <= 1:
            raise ValueError(f"pmr: damping = {self.damping} must be above 0 and at most 1")
        apart = math.sqrt(2) * self.circle_radius
        if 2 * self.reach > apart:
            raise ValueError(
                f"pmr: 2 * (agent_size + landmark_size) = {2 * self.reach:g} must be at most {apart:g}, the distance "
                "of neighbouring landmarks, so that an agent is at one landmark only"
            )

    @property
    def name(self) -> str:
        return options_in_names.compose("pmr", options_in_names.changed(self))

    @property
    def reach(self) -> float:
        """An agent nearer than this to a landmark, centre to centre, is there."""
        return self.agent_size + self.landmark_size

    @property
    def landmarks(self) -> tuple[tuple[float, float], ...]:
        """Centres (x, y) in the order of `LANDMARKS`."""
        return on_circle(len(LANDMARKS), self.circle_radius)

    @property
    def physics(self) -> Physics:
        return Physics(self.dt, self.damping)

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        speed = self.accel * self.dt / self.damping  # what full thrust for ever comes to, on one axis
        farthest = self.start_range + self.horizon * self.dt * speed
        return Box(*_about_zero(max(speed, 2 * farthest, farthest + self.circle_radius)), (8 + 2 * len(LANDMARKS),))

    def action_space(self, agent: str | None = None) -> Box:
        del agent
        return Box(-1.0, 1.0, (2,))

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        """Both agents at rest on uniform positions."""
        start = jax.random.uniform(key, (4,), minval=-self.start_range, maxval=self.start_range)
        state = State((at_rest(start[0], start[1]), at_rest(start[2], start[3])), jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        """One step; the game is deterministic and `key` unused.

        Events, 0 or 1 an agent, for each landmark: `reached_east` (it is there now, and was not before the step) and
        `met_east` (the agents met there, which ends the game); likewise north, west, south. The team's return is
        `meeting_reward` times the `met_...` of either agent.
        """
        del key
        forces = [thrust(actions[agent], self.accel) for agent in self.agents]
        first, second = (moved(self.physics, body, force) for body, force in zip(state.agents, forces, strict=True))
        before, state = state, State((first, second), state.time + 1)
        events, terminated = self._events(before, state)
        truncated = ~terminated & (state.time >= self.horizon)
        done = terminated | truncated
        share = jnp.where(terminated, jnp.float32(self.meeting_reward / self.num_agents), 0.0)
        obs = self.get_obs(state)
        info = {"terminated": terminated, "truncated": truncated, "final_observation": obs, "events": events}
        dones = {**dict.fromkeys(self.agents, done), "__all__": done}
        return obs, state, dict.fromkeys(self.agents, share), dones, info

    def _events(self, before: State, after: State) -> tuple[dict[str, Int[Array, " A"]], Bool[Array, ""]]:
        """The events of a step, and whether the agents have met."""
        events, over = {}, jnp.zeros((), bool)
        for name, place in zip(LANDMARKS, self.landmarks, strict=True):
            there = [distance(body, Vector(*place)) < self.reach for body in after.agents]
            was = [distance(body, Vector(*place)) < self.reach for body in before.agents]
            met = there[0] & there[1]
            events[f"reached_{name}"] = jnp.stack([now & ~then for now, then in zip(there, was, strict=True)])
            events[f"met_{name}"] = jnp.stack([met, met])
            over = over | met
        return {name: event.astype(jnp.int32) for name, event in events.items()}, over

    def get_obs(self, state: State) -> Observations:
        pairs = zip(state.agents, state.agents[::-1], strict=True)
        return {agent: self._shown(own, mate) for agent, (own, mate) in zip(self.agents, pairs, strict=True)}

    def _shown(self, own: Body, mate: Body) -> Float[Array, " o"]:
        landmarks = [offset for x, y in self.landmarks for offset in (x - own.x, y - own.y)]
        return jnp.stack([own.vx, own.vy, own.x, own.y, *landmarks, mate.x - own.x, mate.y - own.y, mate.vx, mate.vy])

    def render(self, state: State) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of one game: landmarks by their initials, agents by colour with their velocities."""
        return _pmr_render.picture(self, state)


def _about_zero(bound: float) -> tuple[float, float]:
    """Bounds with room for rounding."""
    return -1.001 * bound, 1.001 * bound


def parse(variant: str) -> PMR:
    """The game of a name without its family: nothing, or settings such as `?horizon=30&circle_radius=2.25`.

    Raises:
        ValueError: there is no such setting, or something else stands there.
    """
    first, options = options_in_names.read(variant)
    if first:
        raise ValueError(f"pmr has no variant {first!r}; write pmr, or settings as in pmr?horizon=30")
    return PMR(**options_in_names.check(options, PMR, "pmr"))

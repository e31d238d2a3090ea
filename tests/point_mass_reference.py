"""Driving `mpe2` itself: its world with bodies of our making, and our two games on top of it, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from mpe2._mpe_utils.core import Agent, World

from jaxscope.envs._point_mass import Body
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.envs.predator_prey import PredatorPrey


class Disc(NamedTuple):
    """What mpe2 fixes about a body."""

    size: float
    accel: float
    max_speed: float | None
    collides: bool = True
    movable: bool = True


def step_world(discs: Sequence[Disc], position: np.ndarray, velocity: np.ndarray, action: np.ndarray) -> tuple:
    """Positions and velocities `[n, 2]` one step later; `action` is the thrust `[n, 2]`."""
    world = World()
    for disc, place, speed, thrust in zip(discs, position, velocity, action, strict=True):
        agent = Agent()
        agent.silent, agent.collide, agent.movable = True, disc.collides, disc.movable
        agent.size, agent.accel, agent.max_speed = disc.size, disc.accel, disc.max_speed
        agent.state.p_pos, agent.state.p_vel = place.astype(float), speed.astype(float)
        agent.action.u = disc.accel * thrust.astype(float)
        world.agents.append(agent)
    world.step()
    states = [agent.state for agent in world.agents]
    return np.stack([state.p_pos for state in states]), np.stack([state.p_vel for state in states])


def bodies(position: Any, velocity: Any) -> tuple[Body, ...]:
    """Arrays `[..., n, 2]` as n bodies with leaves `[...]`, in their own precision."""
    return tuple(
        Body(*(jnp.asarray(leaf) for leaf in (p[..., 0], p[..., 1], v[..., 0], v[..., 1])))
        for p, v in zip(np.moveaxis(position, -2, 0), np.moveaxis(velocity, -2, 0), strict=True)
    )


def arrays(some: Sequence[Body]) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities `[..., n, 2]` of n bodies."""
    position = np.stack([np.stack([b.x, b.y], -1) for b in some], -2)
    return position, np.stack([np.stack([b.vx, b.vy], -1) for b in some], -2)


class Rendezvous:
    """One game of `PMR`."""

    def __init__(self, env: PMR, rng: np.random.Generator):
        self.env = env
        self.position, self.velocity = rng.uniform(-env.start_range, env.start_range, (2, 2)), np.zeros((2, 2))
        self.time = 0

    def step(self, action: np.ndarray) -> tuple[float, str | None]:
        """The team's reward, and the landmark on which the agents have met."""
        disc = Disc(self.env.agent_size, self.env.accel, None, collides=False)
        self.position, self.velocity = step_world([disc] * 2, self.position, self.velocity, action)
        self.time += 1
        corners = dict(
            zip(LANDMARKS, self.env.circle_radius * np.array([(1, 0), (0, 1), (-1, 0), (0, -1)]), strict=True)
        )
        for name, place in corners.items():
            if (np.linalg.norm(self.position - place, axis=1) < self.env.reach).all():
                return self.env.meeting_reward, name
        return 0.0, None


class Hunt:
    """One game of `PredatorPrey`; the first two bodies are the predators."""

    def __init__(self, env: PredatorPrey, rng: np.random.Generator):
        self.env, self.time = env, 0
        angles = 2 * np.pi * np.arange(env.num_prey) / env.num_prey
        prey = env.start_radius * np.stack([np.cos(angles), np.sin(angles)], 1)
        self.position = np.concatenate([rng.uniform(-env.start_range, env.start_range, (2, 2)), prey])
        self.velocity = np.zeros_like(self.position)
        self.stag = rng.permutation(np.arange(env.num_prey) < env.num_stags)
        self.alive = np.ones(env.num_prey, bool)

    def _flight(self, prey: np.ndarray) -> np.ndarray:
        offsets = prey - self.position[:2]
        apart = np.linalg.norm(offsets, axis=1)
        if apart.min() >= self.env.prey_sight:
            return np.zeros(2)
        away = offsets[apart.argmin()] / apart.min()
        away = np.where(np.abs(prey) > self.env.arena, -np.sign(prey), away)
        return away / np.linalg.norm(away)

    def step(self, action: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The team's reward, who of the two was near enough to which prey `[2, P]`, and what was caught `[P]`."""
        env = self.env
        hunter = Disc(env.predator_size, env.predator_accel, env.predator_max_speed)
        discs = [hunter] * 2
        discs += [Disc(env.prey_size, env.prey_accel, env.prey_max_speed, alive, alive) for alive in self.alive]
        thrusts = [*action, *(self._flight(prey) for prey in self.position[2:])]
        self.position, self.velocity = step_world(discs, self.position, self.velocity, np.array(thrusts))
        self.time += 1
        apart = np.linalg.norm(self.position[:2, None] - self.position[None, 2:], axis=-1)
        near = apart < env.capture_distance
        caught = self.alive & np.where(self.stag, near.all(0), near.any(0))
        self.alive = self.alive & ~caught
        self.velocity[2:][caught] = 0.0
        reward = np.where(self.stag, env.stag_reward, env.rabbit_reward)[caught].sum()
        return float(reward), near, caught

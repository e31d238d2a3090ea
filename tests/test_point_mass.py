"""The physics of the plane against mpe2: thrust, damping, contacts and speed limits, in both precisions."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpe2 import simple_tag_v3
from point_mass_reference import Disc, arrays, bodies, step_world

from jaxscope.envs._point_mass import Body, Physics, Vector, contact, contacts, moved, on_circle, thrust

PREDATOR, PREY = Disc(0.075, 3.0, 1.0), Disc(0.05, 1.5, 0.3)
WORLDS = {
    "hunt": (PREDATOR, PREDATOR, PREY, PREY, PREY, PREY, PREY),
    "ghosts": (PREDATOR, PREY._replace(collides=False), PREY, PREY),
    "posts": (PREDATOR, PREY, Disc(0.2, 0.0, None, movable=False)),
    "unlimited": (Disc(0.15, 5.0, None), Disc(0.3, 1.0, None)),
    "alone": (Disc(0.15, 5.0, None),),
}
COUNT = 250
# A float32 is good to 6e-8 of a number near 1. The speed that a contact gives amplifies that ten times.
TOLERANCE = {jnp.float64: 1e-12, jnp.float32: 3e-6}
few = settings(max_examples=60, deadline=None)
numbers = st.floats(-2, 2, width=32)
places = st.tuples(numbers, numbers)


@functools.partial(jax.jit, static_argnums=0)
def step(discs, some: tuple[Body, ...], action) -> tuple[Body, ...]:
    """Our step of one world or many; actions `[..., n, 2]`."""
    pushes = contacts(Physics(), some, [disc.size for disc in discs], [disc.collides for disc in discs])
    after = []
    for number, (disc, body, push) in enumerate(zip(discs, some, pushes, strict=True)):
        own = disc.accel * action[..., number, :]
        force = Vector(own[..., 0] + push.x, own[..., 1] + push.y)
        after.append(moved(Physics(), body, force, disc.max_speed) if disc.movable else body)
    return tuple(after)


@functools.cache
def crowded(name):
    """Random worlds with many contacts: positions, velocities, actions before, positions, velocities after, float64."""
    rng, n = np.random.default_rng(len(name)), len(WORLDS[name])
    spread = rng.choice([0.1, 0.3, 1.5], (COUNT, 1, 1))
    position, action = spread * rng.uniform(-1, 1, (COUNT, n, 2)), rng.uniform(-1, 1, (COUNT, n, 2))
    velocity = rng.uniform(-1.5, 1.5, (COUNT, n, 2))
    games = (position, velocity, action)
    after = [step_world(WORLDS[name], *game) for game in zip(*games, strict=True)]
    return (*games, np.stack([p for p, _ in after]), np.stack([v for _, v in after]))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", WORLDS)
def test_equals_the_reference(name, dtype):
    position, velocity, action, next_position, next_velocity = crowded(name)
    with jax.enable_x64(dtype == jnp.float64):
        some = bodies(position.astype(dtype), velocity.astype(dtype))
        ours = arrays(step(WORLDS[name], some, jnp.asarray(action, dtype)))
    assert ours[0].dtype == dtype
    # Forces reach hundreds where bodies overlap, hence a tolerance that grows with the speed.
    np.testing.assert_allclose(ours[0], next_position, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(ours[1], next_velocity, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_random_worlds_hold_what_can_go_wrong():
    position, _, _, _, velocity = crowded("hunt")
    apart = np.linalg.norm(position[:, :, None] - position[:, None], axis=-1)[:, *np.triu_indices(7, 1)]
    speed = np.linalg.norm(velocity, axis=-1)
    assert (apart < 0.1).sum() > 500  # deep contacts
    assert ((apart > 0.1) & (apart < 0.105)).sum() > 20  # just touching, or nearly
    assert np.isclose(speed[:, :2], 1.0).sum() > 100  # as fast as allowed
    assert (speed[:, :2] < 0.9).sum() > 100


def test_equals_the_tag_game_of_the_reference():
    """Its own environment, with its own thrusts, limits and posts."""
    game = simple_tag_v3.parallel_env(
        num_good=3, num_adversaries=2, num_obstacles=2, continuous_actions=True, max_cycles=60
    )
    game.reset(seed=0)
    world, rng = game.unwrapped.world, np.random.default_rng(0)  # pyright: ignore[reportAttributeAccessIssue]
    discs = tuple(Disc(e.size, e.accel or 0.0, e.max_speed, e.collide, e.movable) for e in world.entities)
    assert discs[0] == PREDATOR
    assert (Physics().dt, Physics().damping) == (world.dt, world.damping)
    assert (Physics().contact_force, Physics().contact_margin) == (world.contact_force, world.contact_margin)
    for _ in range(60):
        before = [np.stack([getattr(e.state, what) for e in world.entities]) for what in ("p_pos", "p_vel")]
        drawn = rng.uniform(0, 1, (5, 5)).astype(np.float32)
        game.step(dict(zip(game.possible_agents, drawn, strict=True)))
        action = np.zeros((7, 2))
        action[:5] = np.stack([drawn[:, 2] - drawn[:, 1], drawn[:, 4] - drawn[:, 3]], 1)
        with jax.enable_x64(True):
            ours = arrays(step(discs, bodies(*before), jnp.asarray(action)))
        np.testing.assert_allclose(ours[0], np.stack([e.state.p_pos for e in world.entities]), atol=1e-7)
        np.testing.assert_allclose(ours[1], np.stack([e.state.p_vel for e in world.entities]), atol=1e-7)


@few
@given(places, places)
def test_contact_forces_are_opposite_and_along_the_line_between(a, b):
    """Action and reaction, pushing apart; none from afar, none between bodies with one centre."""
    one, two = (Body(*(jnp.float32(v) for v in (*place, 0, 0))) for place in (a, b))
    on_one, on_two = contact(Physics(), one, two, 0.5), contact(Physics(), two, one, 0.5)
    np.testing.assert_array_equal(on_one, -np.array(on_two))
    dx, dy = np.float32(a[0]) - np.float32(b[0]), np.float32(a[1]) - np.float32(b[1])
    assert on_one.x * dx >= 0
    assert on_one.y * dy >= 0
    assert abs(on_one.x * dy - on_one.y * dx) < 1e-3
    strength, apart = math.hypot(*on_one), math.hypot(dx, dy)
    if apart > 0.52:
        assert strength < 1e-6
    elif apart > 1e-3:
        assert strength == pytest.approx(100 * max(0.5 - apart, 0), abs=0.07)
    elif apart == 0:
        assert strength == 0


@few
@given(places, places, st.floats(0.1, 3))
def test_no_body_is_faster_than_allowed(velocity, force, limit):
    before = Body(*(jnp.float32(v) for v in (0, 0, *velocity)))
    after = moved(Physics(), before, Vector(*(jnp.float32(10 * f) for f in force)), limit)
    free = moved(Physics(), before, Vector(*(jnp.float32(10 * f) for f in force)))
    assert math.hypot(after.vx, after.vy) <= limit * (1 + 1e-6)
    assert float(after.vx * free.vy) == pytest.approx(float(after.vy * free.vx), abs=1e-4)  # the direction stays
    np.testing.assert_allclose([after.x, after.y], 0.1 * np.array(velocity), atol=1e-6)  # moved with the old velocity


def test_thrust_is_clipped():
    np.testing.assert_allclose(np.array(thrust(jnp.array([0.5, -7.0]), 3.0)), (1.5, -3.0))


def test_points_on_a_circle_go_round_from_the_east():
    np.testing.assert_allclose(on_circle(4, 2.0), [(2, 0), (0, 2), (-2, 0), (0, -2)], atol=1e-12)

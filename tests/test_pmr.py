"""The rendezvous game: beside mpe2 with our rules on top, its symmetries, its reward, names and pictures."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass_reference import Rendezvous, arrays, bodies
from stored_pictures import assert_looks_as_it_did

import jaxscope
from jaxscope.drawing import SEAT_COLOURS
from jaxscope.envs.pmr import LANDMARKS, PMR, State

ENV = PMR()
GAMES = 40
few = settings(max_examples=40, deadline=None)
#: Numbers in float32 against float64.
TOLERANCE = 3e-6


@functools.partial(jax.jit, static_argnums=0)
def step(env, state, action):
    """One step of one game or many; actions `[..., 2, 2]`."""
    take = functools.partial(env.step_env, jax.random.key(0))
    actions = {agent: action[..., seat, :] for seat, agent in enumerate(env.agents)}
    return take(state, actions) if state.time.ndim == 0 else jax.vmap(take)(state, actions)


def state_of(position, velocity, time=0):
    """Arrays `[..., 2, 2]` as a state."""
    position, velocity = np.asarray(position, np.float32), np.asarray(velocity, np.float32)
    first, second = bodies(position, velocity)
    return State((first, second), jnp.broadcast_to(jnp.int32(time), position.shape[:-2]))


@functools.cache
def reference():
    """Games of the reference with agents that go to landmarks, noisily: a record of every step."""
    rng, rows = np.random.default_rng(5), []
    corners = np.array(ENV.landmarks)
    for number in range(GAMES):
        both = [number // 2 % 4, (number // 2 + number % 2) % 4]  # the same landmark in every other game
        game, goals, met = Rendezvous(ENV, rng), corners[both], None
        while met is None and game.time < ENV.horizon:
            before = game.position.copy(), game.velocity.copy(), game.time
            action = np.clip(goals - game.position + 0.5 * rng.normal(size=(2, 2)), -1, 1)
            reward, met = game.step(action)
            rows.append((*before, action, game.position, game.velocity, reward, met or ""))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_equals_the_reference_step_by_step():
    position, velocity, time, action, next_position, next_velocity, reward, met = reference()
    assert {*met} == {"", *LANDMARKS}
    assert GAMES / 2 <= (reward > 0).sum() < GAMES
    _, state, rewards, dones, info = step(ENV, state_of(position, velocity, 0)._replace(time=jnp.array(time)), action)
    ours = arrays(state.agents)
    np.testing.assert_allclose(ours[0], next_position, atol=TOLERANCE)
    np.testing.assert_allclose(ours[1], next_velocity, atol=TOLERANCE)
    np.testing.assert_array_equal(sum(rewards.values()), reward)
    np.testing.assert_array_equal(info["terminated"], met != "")
    np.testing.assert_array_equal(info["truncated"], (met == "") & (time == ENV.horizon - 1))
    np.testing.assert_array_equal(dones["__all__"], info["terminated"] | info["truncated"])
    for name in LANDMARKS:
        np.testing.assert_array_equal(info["events"][f"met_{name}"], np.stack([met == name] * 2, -1))


def test_observations_are_as_documented():
    position, velocity = np.array([[0.1, -0.2], [0.5, 0.4]]), np.array([[1.0, 0.5], [-0.25, 0.0]])
    obs = ENV.get_obs(state_of(position, velocity))
    for seat, agent in enumerate(ENV.agents):
        own, mate = position[seat], position[1 - seat]
        around = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)]) - own
        want = [*velocity[seat], *own, *around.ravel(), *(mate - own), *velocity[1 - seat]]
        np.testing.assert_allclose(obs[agent], want, atol=1e-6)


def test_starts_are_uniform_at_rest_and_away_from_landmarks():
    state = jax.jit(jax.vmap(ENV.reset))(jax.random.split(jax.random.key(0), 2000))[1]
    position, velocity = arrays(state.agents)
    assert (velocity == 0).all()
    assert (np.abs(position) <= 0.5).all()
    np.testing.assert_allclose(position.reshape(-1, 4).mean(0), 0, atol=0.03)
    np.testing.assert_allclose(position.reshape(-1, 4).std(0), 1 / np.sqrt(12), atol=0.02)
    np.testing.assert_allclose(np.corrcoef(position.reshape(-1, 4).T) - np.eye(4), 0, atol=0.1)
    apart = np.linalg.norm(position[:, :, None] - np.array(ENV.landmarks), axis=-1)
    assert apart.min() > ENV.reach


units = st.floats(-1, 1, width=32)
twos = st.lists(st.tuples(units, units), min_size=2, max_size=2)


def outcome(position, velocity, action):
    """State, reward of the team and events `[A]` after a step, as NumPy."""
    _, state, rewards, _, info = jax.device_get(step(ENV, state_of(position, velocity), np.asarray(action, np.float32)))
    return *arrays(state.agents), float(sum(rewards.values())), info["events"]


@few
@given(twos, twos, twos)
def test_swapped_agents_have_swapped_outcomes(position, velocity, action):
    places, speeds, paid, events = outcome(position, velocity, action)
    swapped = outcome(position[::-1], velocity[::-1], action[::-1])
    np.testing.assert_array_equal(swapped[0], places[::-1])
    np.testing.assert_array_equal(swapped[1], speeds[::-1])
    assert swapped[2] == paid
    for name, count in events.items():
        np.testing.assert_array_equal(swapped[3][name], count[::-1])


@few
@given(twos, twos, twos)
def test_a_quarter_turn_of_the_world_turns_the_outcome(position, velocity, action):
    """East becomes north, north west, and so on."""

    def turned(vectors):
        return np.stack([-np.asarray(vectors)[..., 1], np.asarray(vectors)[..., 0]], -1)

    places, speeds, _, events = outcome(position, velocity, action)
    after = outcome(turned(position), turned(velocity), turned(action))
    np.testing.assert_allclose(after[0], turned(places), atol=1e-6)
    np.testing.assert_allclose(after[1], turned(speeds), atol=1e-6)
    corners = np.array(ENV.landmarks)
    if np.abs(np.linalg.norm(places[:, None] - corners, axis=-1) - ENV.reach).min() < 1e-4:
        return  # rounding decides who is there
    for index, name in enumerate(LANDMARKS):
        name_after = LANDMARKS[(index + 1) % 4]
        np.testing.assert_array_equal(after[3][f"met_{name_after}"], events[f"met_{name}"])


@few
@given(twos, twos, twos)
def test_a_step_pays_two_where_both_are_at_one_landmark_and_else_nothing(position, velocity, action):
    position = 1.3 * np.asarray(position)
    places, _, paid, events = outcome(position, velocity, action)
    there = np.linalg.norm(places[:, None] - np.array(ENV.landmarks), axis=-1) < ENV.reach
    met = [events[f"met_{name}"] for name in LANDMARKS]
    assert paid == 2 * there.all(0).sum() == 2 * np.sum(met, axis=0)[0]
    was = np.linalg.norm(position[:, None] - np.array(ENV.landmarks), axis=-1) < ENV.reach
    reached = np.stack([events[f"reached_{name}"] for name in LANDMARKS], -1)
    np.testing.assert_array_equal(reached, there & ~was)


@pytest.mark.parametrize("index", range(4))
def test_agents_meet_on_every_landmark(index):
    places = np.array([ENV.landmarks[index]] * 2) * 0.75
    assert outcome(places, np.zeros((2, 2)), np.zeros((2, 2)))[2] == 2
    apart = places * np.array([[1.0], [-1.0]])
    assert outcome(apart, np.zeros((2, 2)), np.zeros((2, 2)))[2] == 0


def test_names_and_settings():
    assert jaxscope.make("pmr") == jaxscope.make("pmr/") == ENV
    assert jaxscope.make("pmr?circle_radius=2.25").name == "pmr?circle_radius=2.25"
    assert jaxscope.make("pmr", horizon=30) == jaxscope.make("pmr?horizon=30")
    assert jaxscope.make("pmr?meeting_reward=1").meeting_reward == 1.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"horizon": 0}, "horizon = 0 must be positive"),
        ({"agent_size": 0.6}, "at most 1.41421, the distance of neighbouring landmarks"),
        ({"start_range": -1.0}, "start_range = -1.0"),
        ({"damping": 0.0}, "damping = 0.0 must be above 0"),
        ({"accel": float("inf")}, "accel = inf"),
        ({"meeting_reward": float("nan")}, "meeting_reward = nan"),
    ],
)
def test_impossible_settings_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        jaxscope.make("pmr", **settings)


def scene(**changes):
    position, velocity = np.array([[-0.4, 0.3], [0.6, -0.5]]), np.array([[0.9, 0.0], [0.0, -1.2]])
    return state_of(changes.get("position", position), changes.get("velocity", velocity))


def test_a_picture_looks_as_it_did():
    assert_looks_as_it_did(ENV.render(scene()), "pmr.png")


@pytest.mark.parametrize(
    "change",
    [
        {"position": [[-0.4, 0.3], [0.6, -0.3]]},
        {"position": [[0.6, -0.5], [-0.4, 0.3]]},
        {"velocity": [[0.9, 0.0], [0.0, 1.2]]},
        {"position": [[-0.4, 0.3], [4.0, -0.5]]},
    ],
)
def test_whatever_changes_is_seen(change):
    before, after = ENV.render(scene()), ENV.render(scene(**change))
    clearly = np.abs(before.astype(int) - after.astype(int)).max(axis=-1) > 60
    assert clearly.sum() > 40


@pytest.mark.parametrize("place", [(0.0, 0.0), (40.0, 0.5)])
def test_agents_wear_the_colours_of_their_seats_even_beyond_the_edge(place):
    picture = ENV.render(scene(position=[place, (-0.5, -0.5)]))
    for seat, colour in enumerate(SEAT_COLOURS[:3]):
        near = np.abs(picture.astype(int) - np.array(colour)[None, None, :]).max(axis=-1) < 8
        assert (near.sum() > 200) == (seat < 2)

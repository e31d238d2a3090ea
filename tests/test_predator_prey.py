"""The hunting game: beside mpe2 with our rules on top, its symmetries, its reward, names and pictures."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass_reference import Hunt, arrays, bodies
from stored_pictures import assert_looks_as_it_did

import jaxscope
from jaxscope.drawing import SEAT_COLOURS
from jaxscope.envs.predator_prey import PredatorPrey, State

ENV = PredatorPrey()
GAMES, CROWDS = 60, 600
few = settings(max_examples=30, deadline=None)
#: Float32 against float64; a contact turns a rounded distance into a ten times larger change of speed.
OF_POSITION, OF_VELOCITY = 1e-6, 1e-5


@functools.partial(jax.jit, static_argnums=0)
def step(env, state, action):
    """One step of one game or many; actions `[..., 2, 2]`."""
    take = functools.partial(env.step_env, jax.random.key(0))
    actions = {agent: action[..., seat, :] for seat, agent in enumerate(env.agents)}
    return take(state, actions) if state.time.ndim == 0 else jax.vmap(take)(state, actions)


def state_of(position, velocity, stag, alive, time: Any = 0):
    """Arrays `[..., 2 + P, 2]` and `[..., P]` as a state."""
    position, velocity = np.asarray(position, np.float32), np.asarray(velocity, np.float32)
    first, second, *prey = bodies(position, velocity)
    flags = lambda rows: tuple(jnp.asarray(row) for row in np.moveaxis(np.asarray(rows, bool), -1, 0))  # noqa: E731
    times = jnp.broadcast_to(jnp.asarray(time, jnp.int32), position.shape[:-2])
    return State((first, second), tuple(prey), flags(stag), flags(alive), times)


def alive_of(state):
    return np.stack(state.alive, -1)


def drawn(seed):
    """A crowded state with some prey caught: positions, velocities, stags, alive."""
    rng = np.random.default_rng(seed)
    position = rng.uniform(-1, 1, (7, 2)) * rng.choice([0.3, 1.3])
    alive = rng.random(5) < 0.7
    velocity = rng.uniform(-0.2, 0.2, (7, 2)) * np.append([1, 1], alive)[:, None]
    return position, velocity, rng.permutation(np.arange(5) < 2), alive


def recorded(game, action):
    """A step of the reference: what was before, what was done, what came of it."""
    before = game.position.copy(), game.velocity.copy(), game.stag, game.alive, game.time, action
    reward, near, caught = game.step(action)
    return *before, game.position, game.velocity, game.alive, reward, near, caught


@functools.cache
def reference():
    """Steps of the reference: whole games in which predators chase prey, noisily and often together, and single steps
    from crowded states."""
    rng, rows = np.random.default_rng(1), []
    for number in range(GAMES):
        game = Hunt(ENV, rng)
        while game.alive.any() and game.time < ENV.horizon:
            apart = np.linalg.norm(game.position[:2, None] - game.position[None, 2:], axis=-1)
            apart = np.where(game.alive, apart, np.inf)
            wanted = [apart[0], apart[0] if number % 3 else apart[1]]
            wanted = [np.where(game.stag, row, row + 10 * (number % 2)) for row in wanted]
            goal = game.position[2 + np.argmin(wanted, 1)]
            action = np.clip(3 * (goal - game.position[:2]) + 0.3 * rng.normal(size=(2, 2)), -1, 1)
            rows.append(recorded(game, action))
    for seed in range(CROWDS):
        game = Hunt(ENV, rng)
        game.position, game.velocity, game.stag, game.alive = drawn(seed)
        rows.append(recorded(game, rng.uniform(-1, 1, (2, 2))))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_equals_the_reference_step_by_step():
    *before, action, next_position, next_velocity, next_alive, reward, near, caught = reference()
    stag, alive, time = before[2:]
    _, state, rewards, _, info = step(ENV, state_of(*before), action)
    ours = arrays((*state.predators, *state.prey))
    np.testing.assert_allclose(ours[0], next_position, atol=OF_POSITION)
    np.testing.assert_allclose(ours[1], next_velocity, atol=OF_VELOCITY)
    np.testing.assert_array_equal(alive_of(state), next_alive)
    for paid in rewards.values():
        np.testing.assert_array_equal(paid, reward)
    np.testing.assert_array_equal(info["terminated"], ~next_alive.any(-1))
    np.testing.assert_array_equal(info["truncated"], next_alive.any(-1) & (time == ENV.horizon - 1))
    only = near & ~near[:, ::-1]
    want = {
        "rabbit_caught_alone": ((caught & ~stag)[:, None] & only).sum(-1),
        "rabbit_caught_jointly": np.repeat((caught & ~stag & near.all(1)).sum(-1)[:, None], 2, 1),
        "stag_caught": np.repeat((caught & stag).sum(-1)[:, None], 2, 1),
        "stag_held": ((alive & stag)[:, None] & only).sum(-1),
    }
    assert want.keys() == info["events"].keys()
    for name, counts in want.items():
        np.testing.assert_array_equal(info["events"][name], counts)
        assert counts.sum() > 10, name


def test_the_reference_met_what_can_go_wrong():
    position, velocity, _, alive, _, _, next_position, *_ = reference()
    apart = np.linalg.norm(position[:, :2, None] - position[:, None, 2:], axis=-1)
    assert ((apart < 0.125) & alive[:, None]).sum() > 100  # predators push prey
    assert (np.linalg.norm(position[:, 0] - position[:, 1], axis=-1) < 0.15).sum() > 50  # and each other
    fleeing = alive & (apart.min(1) < ENV.prey_sight)
    assert (fleeing & (np.abs(position[:, 2:]) > ENV.arena).any(-1)).sum() > 50  # and are turned back
    assert (~alive).sum() > 200
    stopped = next_position[:, 2:][~alive] - position[:, 2:][~alive]
    assert (stopped == 0).all()
    assert (velocity[:, 2:][~alive] == 0).all()


def visible(position, stag, alive):
    """What a predator is shown of the prey and of its teammate, read from the documentation."""
    for seat in range(2):
        own, mate = position[seat], position[1 - seat]
        yield seat, np.linalg.norm(mate - own) < ENV.sight, (np.linalg.norm(position[2:] - own, axis=1) < 1.5) & alive


def test_observations_are_as_documented():
    position, velocity, stag, alive, *_ = reference()
    for row in range(0, len(position), 40):
        p, v = position[row], velocity[row]
        obs = ENV.get_obs(state_of(p, v, stag[row], alive[row]))
        for seat, sees_mate, sees_prey in visible(p, stag[row], alive[row]):
            want = [*v[seat], *p[seat], *(sees_mate * np.array([*(p[1 - seat] - p[seat]), *v[1 - seat], 1]))]
            for k in range(5):
                kinds = ~stag[row][k], stag[row][k]
                want.extend(sees_prey[k] * np.array([*(p[2 + k] - p[seat]), *v[2 + k], *kinds, 1]))
            np.testing.assert_allclose(obs[ENV.agents[seat]], want, atol=2e-6)


def test_starts_are_as_documented():
    state = jax.jit(jax.vmap(ENV.reset))(jax.random.split(jax.random.key(0), 3000))[1]
    position, velocity = arrays((*state.predators, *state.prey))
    assert (velocity == 0).all()
    assert alive_of(state).all()
    starts = position[:, :2].reshape(-1, 4)
    assert (np.abs(starts) <= 0.1).all()
    np.testing.assert_allclose(starts.std(0), 0.1 / np.sqrt(3), atol=0.002)
    angles = 2 * np.pi * np.arange(5) / 5
    np.testing.assert_allclose(
        position[:, 2:], np.broadcast_to(np.stack([np.cos(angles), np.sin(angles)], 1), (3000, 5, 2)), atol=1e-6
    )
    stag = np.stack(state.stag, -1)
    assert (stag.sum(-1) == 2).all()
    pairs, counts = np.unique(stag, axis=0, return_counts=True)
    assert len(pairs) == 10
    np.testing.assert_allclose(counts / 3000, 0.1, atol=0.025)


@few
@given(st.integers(0, 4), st.integers(0, 4), st.floats(0, 1, width=32, exclude_max=True))
def test_there_are_as_many_stags_as_asked_for(rabbits, stags, lot):
    if rabbits + stags == 0:
        return
    env = PredatorPrey(num_rabbits=rabbits, num_stags=stags)
    assert sum(bool(kind) for kind in env._kinds(jnp.float32(lot))) == stags


units = st.floats(-1, 1, width=32)
twos = st.lists(st.tuples(units, units), min_size=2, max_size=2)
games = st.integers(0, 2**31 - 1)


def outcome(position, velocity, stag, alive, action):
    """Positions, velocities, alive, reward, events after a step, as NumPy."""
    result = step(ENV, state_of(position, velocity, stag, alive), np.asarray(action, np.float32))
    _, state, rewards, _, info = jax.device_get(result)
    moved = arrays((*state.predators, *state.prey))
    return *moved, alive_of(state), float(rewards["agent_0"]), info["events"]


@few
@given(games, twos)
def test_swapped_predators_have_swapped_outcomes(seed, action):
    position, velocity, stag, alive = drawn(seed)
    order = [1, 0, 2, 3, 4, 5, 6]
    ours = outcome(position, velocity, stag, alive, action)
    swapped = outcome(position[order], velocity[order], stag, alive, action[::-1])
    for after, before in zip(swapped[:2], ours[:2], strict=True):
        np.testing.assert_allclose(after, before[order], atol=2e-6)
    np.testing.assert_array_equal(swapped[2], ours[2])
    assert swapped[3] == ours[3]
    for name, count in ours[4].items():
        np.testing.assert_array_equal(swapped[4][name], count[::-1])


@few
@given(games, twos)
def test_a_mirrored_world_has_a_mirrored_outcome(seed, action):
    position, velocity, stag, alive = drawn(seed)
    for mirror in ([-1, 1], [1, -1]):
        ours = outcome(position, velocity, stag, alive, action)
        after = outcome(position * mirror, velocity * mirror, stag, alive, np.asarray(action) * mirror)
        np.testing.assert_allclose(after[0], ours[0] * mirror, atol=2e-6)
        np.testing.assert_allclose(after[1], ours[1] * mirror, atol=2e-6)
        np.testing.assert_array_equal(after[2], ours[2])


@few
@given(games, twos)
def test_a_step_pays_for_what_is_caught_and_caught_prey_is_gone(seed, action):
    position, velocity, stag, alive = drawn(seed)
    places, speeds, still, paid, events = outcome(position, velocity, stag, alive, action)
    caught = alive & ~still
    assert not (still & ~alive).any()
    assert paid == 0.5 * (caught & ~stag).sum() + 2 * (caught & stag).sum()
    rabbits = events["rabbit_caught_alone"].sum() + events["rabbit_caught_jointly"][0]
    assert paid == 0.5 * rabbits + 2 * events["stag_caught"][0]
    near = np.linalg.norm(places[:2, None] - places[None, 2:], axis=-1) < ENV.capture_distance
    np.testing.assert_array_equal(caught, alive & np.where(stag, near.all(0), near.any(0)))
    np.testing.assert_array_equal(places[2:][~alive], np.float32(position[2:][~alive]))
    assert (speeds[2:][caught] == 0).all()
    elsewhere = np.where(alive[:, None], position[2:], 0.123)  # where caught prey lie touches nobody
    again = outcome(np.concatenate([position[:2], elsewhere]), velocity, stag, alive, action)
    np.testing.assert_array_equal(again[0][:2], places[:2])
    np.testing.assert_array_equal(again[0][2:][alive], places[2:][alive])


def test_prey_flee_the_nearest_predator_and_are_turned_back_at_the_border():
    far = [(9.0, 9.0)] * 5

    def pushed(prey, predators):
        """The direction in which a prey gains speed."""
        position = [*predators, prey, *far[1:]]
        after = outcome(np.array(position), np.zeros((7, 2)), np.zeros(5, bool), np.arange(5) == 0, np.zeros((2, 2)))
        return after[1][2] / 0.15  # full thrust 1.5 for a time of 0.1

    np.testing.assert_allclose(pushed((0.3, 0.0), [(0.0, 0.0), (0.0, 3.0)]), [1, 0], atol=1e-5)
    np.testing.assert_allclose(pushed((0.0, 0.0), [(0.3, 0.3), (-0.4, 0.0)]), [1, 0], atol=1e-5)  # not the second
    np.testing.assert_allclose(pushed((0.51, 0.0), [(0.0, 0.0), (0.0, 3.0)]), [0, 0], atol=1e-5)  # out of its sight
    np.testing.assert_allclose(pushed((1.1, 0.5), [(0.8, 0.5), (0.0, 3.0)]), [-1, 0], atol=1e-5)
    np.testing.assert_allclose(pushed((1.1, 0.8), [(1.1, 0.5), (0.0, 3.0)]), np.array([-1, 1]) / np.sqrt(2), atol=1e-5)


def test_one_predator_holds_a_stag_and_two_catch_it():
    position = np.array([(0.2, 0.0), (-0.2, 0.0), (0.0, 0.0), *[(9.0, 9.0)] * 4])
    stag, alive = np.arange(5) == 0, np.arange(5) == 0
    *_, paid, events = outcome(position, np.zeros((7, 2)), stag, alive, np.zeros((2, 2)))
    assert paid == 2
    assert events["stag_caught"].tolist() == [1, 1]
    position[1] = (-0.4, 0.0)
    *_, still, paid, events = outcome(position, np.zeros((7, 2)), stag, alive, np.zeros((2, 2)))
    assert still[0]
    assert paid == 0
    assert events["stag_held"].tolist() == [1, 0]


def test_two_predators_near_one_rabbit_are_paid_once():
    position = np.array([(0.2, 0.0), (-0.2, 0.0), (0.0, 0.0), *[(9.0, 9.0)] * 4])
    *_, paid, events = outcome(position, np.zeros((7, 2)), np.zeros(5, bool), np.arange(5) < 2, np.zeros((2, 2)))
    assert paid == 0.5
    assert events["rabbit_caught_jointly"].tolist() == [1, 1]


def test_a_game_ends_with_its_last_prey():
    env = PredatorPrey(num_rabbits=1, num_stags=0)
    state = state_of([(0.2, 0.0), (3.0, 0.0), (0.0, 0.0)], np.zeros((3, 2)), [False], [True])
    _, after, rewards, dones, info = step(env, state, np.zeros((2, 2), np.float32))
    assert (bool(info["terminated"]), bool(info["truncated"]), bool(dones["__all__"])) == (True, False, True)
    assert rewards["agent_1"] == 0.5
    assert not after.alive[0]


def test_with_endless_sight_everything_alive_is_shown():
    env = jaxscope.make("predator_prey?sight=inf")
    obs, _ = env.reset(jax.random.key(0))
    assert (np.asarray(obs["agent_0"])[9:].reshape(5, 7)[:, -1] == 1).all()
    assert np.isfinite(env.observation_space().high)  # pyright: ignore[reportAttributeAccessIssue]


def test_names_and_settings():
    assert jaxscope.make("predator_prey") == jaxscope.make("predator-prey") == ENV
    more = jaxscope.make("predator_prey?num_stags=3&sight=inf")
    assert more.name == "predator_prey?num_stags=3&sight=inf"
    assert more.observation_space().shape == (9 + 7 * 6,)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"horizon": -1}, "horizon = -1 must be positive"),
        ({"num_rabbits": 0, "num_stags": 0}, r"num_rabbits \+ num_stags = 0 must be at least 1"),
        ({"num_stags": -1}, "num_stags = -1"),
        ({"sight": 0.0}, "sight = 0.0 must be positive"),
        ({"damping": 1.5}, "damping = 1.5 must be from 0 to 1"),
        ({"prey_sight": -0.1}, "prey_sight = -0.1 must be finite, at least 0"),
        ({"stag_reward": float("inf")}, "stag_reward = inf"),
    ],
)
def test_impossible_settings_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        jaxscope.make("predator_prey", **settings)


POSITION = np.array([(-0.4, 0.3), (0.6, -0.5), (1, 0), (0.3, 0.95), (-0.8, 0.6), (-0.8, -0.6), (0.3, -0.95)])


def scene(position=POSITION, stag=(0, 1, 0, 1, 0), alive=(1, 1, 1, 1, 0), velocity=((0.9, 0.0), (0.0, -0.6))):
    return state_of(position, [*velocity, *[(0, 0)] * 5], stag, alive)


def test_a_picture_looks_as_it_did():
    assert_looks_as_it_did(ENV.render(scene()), "predator_prey.png")


@pytest.mark.parametrize(
    "change",
    [
        {"stag": (1, 1, 0, 0, 0)},
        {"alive": (1, 1, 1, 0, 0)},
        {"alive": (1, 1, 1, 1, 1)},
        {"velocity": ((-0.9, 0.0), (0.0, -0.6))},
        {"position": POSITION[[1, 0, 2, 3, 4, 5, 6]]},
        {"position": POSITION + 0.1},
    ],
)
def test_whatever_changes_is_seen(change):
    before, after = ENV.render(scene()), ENV.render(scene(**change))
    clearly = np.abs(before.astype(int) - after.astype(int)).max(axis=-1) > 60
    assert clearly.sum() > 40


def test_predators_wear_the_colours_of_their_seats():
    picture = ENV.render(scene())
    for seat, colour in enumerate(SEAT_COLOURS[:3]):
        near = np.abs(picture.astype(int) - np.array(colour)[None, None, :]).max(axis=-1) < 8
        assert (near.sum() > 150) == (seat < 2)

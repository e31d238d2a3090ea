"""The foraging game against lbforaging: every state, observation, reward and end, at every step."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest
from lbf_reference import Record, record

from jaxscope.envs.lbf import LBF, LOAD, MOVES, parse

# Small crowded fields make conflicts and overlaps common; every setting of the game is off its default somewhere.
GAMES = (
    "8x8-2p-3f",
    "2s-8x8-2p-3f",
    "8x8-2p-3f-coop",
    "2s-8x8-2p-3f-coop?penalty=0.1",
    "5x5-3p-2f?normalize_reward=false&penalty=0.25",
    "2s-5x5-4p-2f?max_player_level=3",
    "1s-6x6-3p-3f?observe_agent_levels=false&min_player_level=2&max_player_level=4&min_food_level=2&max_food_level=5",
    "2s-6x6-3p-2f?grid_observation=true",
    "1s-5x5-4p-2f-coop?grid_observation=true&observe_agent_levels=false&max_food_level=3",
    "6x9-2p-3f?max_steps=30",
    "3s-7x5-3p-2f",
    "3x12-2p-2f?grid_observation=true",
)
EPISODES_PER_GAME = 24
TRANSITIONS_PER_GAME_SLOW = 90_000


def assert_equal_everywhere(env: LBF, expected: Record) -> None:
    """Compare transition by transition. Each starts from the reference's state, and as each ends in it, whole episodes
    are equal too."""

    def one(state, action):
        first_obs, available = env.get_obs(state), env.get_avail_actions(state)
        actions = {agent: action[i] for i, agent in enumerate(env.agents)}
        obs, state, rewards, dones, info = env.step_env(jax.random.key(0), state, actions)
        return first_obs, available, obs, state, rewards, dones, info

    first_obs, available, obs, state, rewards, dones, info = jax.jit(jax.vmap(one))(expected.state, expected.action)
    for name, ours, theirs in zip(state._fields, state, expected.next_state, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    for i, agent in enumerate(env.agents):
        np.testing.assert_array_equal(first_obs[agent], expected.first_obs[:, i], err_msg="observation before")
        np.testing.assert_array_equal(available[agent], expected.valid[:, i], err_msg="available actions")
        np.testing.assert_array_equal(obs[agent], expected.obs[:, i], err_msg="observation after")
        np.testing.assert_allclose(rewards[agent], expected.reward[:, i], atol=1e-6, rtol=1e-6)
        np.testing.assert_array_equal(dones[agent], expected.done)
    np.testing.assert_array_equal(dones["__all__"], expected.done)
    eaten = (expected.next_state.food_level == 0).all(1)
    np.testing.assert_array_equal(info["terminated"], eaten)
    np.testing.assert_array_equal(info["truncated"], expected.done & ~eaten)


def coverage(env: LBF, seen: Record) -> Counter[str]:
    """How often the things happened that could go wrong."""
    before, after = seen.state, seen.next_state
    wanted = before.position + MOVES[seen.action]
    pairs = [(i, j) for i in range(env.num_agents) for j in range(i)]
    loaders = ((seen.action == LOAD) & seen.valid[..., LOAD]).sum(1)
    paid = (seen.reward > 0).sum(1)
    return Counter(
        transitions=len(seen.done),
        eaten=int((before.food_level > after.food_level).sum()),
        joint_loads=int((paid > 1).sum()),
        failed_loads=int(((loaders > 0) & (paid == 0)).sum()),
        conflicts=int(sum((wanted[:, i] == wanted[:, j]).all(1).sum() for i, j in pairs)),
        swaps=int(
            sum(
                ((after.position[:, i] == before.position[:, j]) & (after.position[:, j] == before.position[:, i]))
                .all(1)
                .sum()
                for i, j in pairs
            )
        ),
        overlaps=int(sum((after.position[:, i] == after.position[:, j]).all(1).sum() for i, j in pairs)),
        all_eaten=int((after.food_level == 0).all(1).sum()),
        time_limits=int((seen.done & (after.food_level > 0).any(1)).sum()),
        invalid=int((~np.take_along_axis(seen.valid, seen.action[..., None], 2)).sum()),
    )


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    """What happened in all games of this file."""
    return Counter()


@pytest.mark.parametrize("name", GAMES)
def test_equals_the_reference(name: str, seen: Counter[str]) -> None:
    env = parse(name)
    expected = record(env, EPISODES_PER_GAME, seed=GAMES.index(name))
    assert expected.done.sum() == EPISODES_PER_GAME
    assert_equal_everywhere(env, expected)
    seen.update(coverage(env, expected))


def test_everything_happened(seen: Counter[str]) -> None:
    if not seen:  # this test was run alone
        for name in GAMES[:6]:
            seen.update(coverage(parse(name), record(parse(name), EPISODES_PER_GAME, seed=GAMES.index(name))))
    rare = {name: count for name, count in seen.items() if count < 20}
    assert not rare, f"too rare to test anything: {rare} of {dict(seen)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_equals_the_reference_for_long(name: str) -> None:
    env, parts = parse(name), []
    while sum(len(part.done) for part in parts) < TRANSITIONS_PER_GAME_SLOW:
        parts.append(record(env, 300, seed=1000 + len(parts)))
    assert_equal_everywhere(env, jax.tree.map(lambda *x: np.concatenate(x), *parts))

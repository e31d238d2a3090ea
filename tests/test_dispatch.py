"""Partners in blocks and partners per environment are the same partners."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope import dispatch, make, ppo, rollout
from jaxscope.casting import Casting, Partnering, recast
from jaxscope.types import View
from tests.games import Clock
from tests.test_ppo import SMALL, partners_of

ENV = make("matching/4-8r")


def casting_of(play: rollout.Play) -> Casting:
    assert play.casting is not None
    return play.casting


def acting_parts(num_envs, block):
    panel = partners_of(ENV)
    ids = jax.random.randint(jax.random.key(1), (num_envs // block,), 0, 3)
    parts = dispatch.cast(panel.policies, panel.population, ids)
    obs, state = rollout.reset_envs(ENV, num_envs, jax.random.key(2))
    obs = jax.random.normal(jax.random.key(3), obs.shape)
    view = View(obs[None, :, 0], state, jnp.zeros((1, num_envs), jnp.int32))
    memory = dispatch.initial_memory(parts, 1, num_envs)
    memory = jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(4), leaf.shape), memory)
    return panel, ids, parts, view, memory


@pytest.mark.parametrize("block", [1, 2, 4])
def test_block_actions_equal_env_actions_given_the_same_ids_and_keys(block):
    num_envs = 8
    panel, ids, parts, view, memory = acting_parts(num_envs, block)
    keys = jax.random.split(jax.random.key(5), (1, num_envs))
    per_env = dispatch.cast(panel.policies, panel.population, jnp.repeat(ids, block))
    blocks, block_memory = dispatch.block_actions(panel.policies, parts, memory, view, jax.random.clone(keys))
    envs, env_memory = dispatch.env_actions(panel.policies, per_env, memory, view, jax.random.clone(keys))
    np.testing.assert_array_equal(blocks, envs)
    for ours, reference in zip(jax.tree.leaves(block_memory), jax.tree.leaves(env_memory), strict=True):
        np.testing.assert_allclose(ours, reference, atol=1e-6)
    assert blocks.shape == (1, num_envs)


def test_each_unit_acts_as_its_own_member():
    """One environment at a time, the member called by hand."""
    panel, ids, parts, view, memory = acting_parts(8, 2)
    keys = jax.random.split(jax.random.key(5), (1, 8))
    actions, _ = dispatch.block_actions(panel.policies, parts, memory, view, jax.random.clone(keys))
    for index in range(8):
        member = ids[index // 2]
        kind = int(panel.population.kind(member))
        params = panel.population.gather(member, kind)
        own = jax.tree.map(lambda leaf: leaf[0, index], memory[kind])  # noqa: B023
        seen = View(view.obs[0, index], jax.tree.map(lambda leaf: leaf[index], view.state), view.seat[0, index])  # noqa: B023
        action, _ = panel.policies[kind].act(params, own, seen, jax.random.clone(keys[0, index]))
        assert int(action) == int(actions[0, index])


def test_memories_restart_where_an_episode_begins():
    _, _, parts, _, memory = acting_parts(8, 2)
    reset = jnp.arange(8) < 3
    after = dispatch.restart(parts, memory, reset)
    np.testing.assert_array_equal(after[0][0, :3], 0.0)
    np.testing.assert_array_equal(after[0][0, 3:], memory[0][0, 3:])


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_learner_takes_every_seat_of_a_block_equally_often(seats):
    panel = partners_of(ENV)
    casting = recast(panel.policies, panel.population, Partnering(block_size=12), seats, 24, jax.random.key(0))
    for block in np.asarray(casting.seat).reshape(2, 12):
        np.testing.assert_array_equal(np.bincount(block, minlength=seats), 12 // seats)


def test_single_environments_change_partner_and_seat_only_when_an_episode_begins():
    env = Clock(horizon=4)
    panel = partners_of(env)
    policy = ppo.policy(SMALL, env)
    partnering = Partnering(dispatch="env")
    play = rollout.begin_with_partners(env, policy, panel.policies, panel.population, partnering, 64, jax.random.key(0))
    params = policy.init(jax.random.key(1))
    first, _, _ = rollout.with_partners(
        env, policy, panel.policies, params, panel.population, partnering, play, 3, jax.random.key(2)
    )
    second, _, episodes = rollout.with_partners(
        env, policy, panel.policies, params, panel.population, partnering, first, 1, jax.random.key(3)
    )
    begun, kept, drawn = casting_of(play), casting_of(first), casting_of(second)
    np.testing.assert_array_equal(kept.partner, begun.partner)
    np.testing.assert_array_equal(kept.seat, begun.seat)
    assert episodes.counted.all()
    np.testing.assert_array_equal(episodes.partner[0], kept.partner)
    assert (drawn.partner != kept.partner).any()
    assert (drawn.seat != kept.seat).any()


def test_actions_reach_the_seats_they_are_meant_for():
    """Partners that always name their own id: the game's record of actions shows who sat where."""
    env = make("matching/4-8r-3p")
    num_envs = 12
    panel = partners_of(env)
    partnering = Partnering(block_size=4)
    play = rollout.begin_with_partners(
        env, ppo.policy(SMALL, env), panel.policies, panel.population, partnering, num_envs, jax.random.key(0)
    )

    def acting(casting, view, reset, keys):
        del reset, keys
        return view.seat, casting.memory  # a partner names the seat it sits in

    own = jnp.full(num_envs, 3)
    actions, _ = rollout._partner_actions(acting, play, casting_of(play), own, jax.random.key(1))
    for b in range(num_envs):
        want = [3 if seat == int(casting_of(play).seat[b]) else seat for seat in range(3)]
        assert actions[:, b].tolist() == want


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"dispatch": "gather"}, "'block' or 'env'"),
        ({"block_size": 0}, "at least 1"),
        ({"beta": -1.0}, "negative"),
        ({"ties": "first"}, "average"),
    ],
)
def test_partnering_that_cannot_work_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        Partnering(**settings)


def test_blocks_must_divide_the_environments():
    with pytest.raises(ValueError, match="multiple of block_size"):
        Partnering(block_size=16).units(24)

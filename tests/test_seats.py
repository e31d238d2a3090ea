"""Nothing depends on which seat is called which: swapping seats swaps what belongs to seats and keeps the rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope import make
from jaxscope.spaces import Discrete


def swapped(state):
    """The same game with the two players' seats exchanged."""
    if hasattr(state, "position"):
        return state._replace(position=state.position[::-1], level=state.level[::-1])
    return state._replace(named=state.named[::-1])


@pytest.mark.parametrize("name", ["lbf/5x5-2p-2f", "lbf/2s-5x5-2p-2f-coop", "matching/3-8r"])
def test_swapping_seats_and_actions_swaps_rewards_events_and_views(name):
    env = make(name)
    step = jax.jit(jax.vmap(lambda key, state, actions: env.step_env(key, state, actions)))
    _, states = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 256))
    mirrored = jax.vmap(swapped)(states)
    actions = env.action_space()
    assert isinstance(actions, Discrete)
    paid = 0.0
    for time in range(25):
        draw_key, step_key = jax.random.split(jax.random.fold_in(jax.random.key(1), time))
        a, b = jax.random.randint(draw_key, (2, 256), 0, actions.n)
        keys = jax.random.split(step_key, 256)
        obs, states, rewards, _, info = step(jax.random.clone(keys), states, {"agent_0": a, "agent_1": b})
        other = step(jax.random.clone(keys), mirrored, {"agent_0": b, "agent_1": a})
        mirrored = other[1]
        np.testing.assert_array_equal(obs["agent_0"], other[0]["agent_1"])
        np.testing.assert_array_equal(obs["agent_1"], other[0]["agent_0"])
        np.testing.assert_array_equal(rewards["agent_0"], other[2]["agent_1"])
        np.testing.assert_allclose(env.team_reward(rewards), env.team_reward(other[2]), atol=1e-6)
        np.testing.assert_array_equal(info["terminated"], other[4]["terminated"])
        for event, count in info["events"].items():
            np.testing.assert_array_equal(count, other[4]["events"][event][:, ::-1])
        paid += float(jnp.sum(env.team_reward(rewards)))
    assert paid > 0

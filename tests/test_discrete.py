"""Discrete actions over environments of continuous ones: the same games, with fewer choices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from games import Clock, Steered

import jaxscope
from jaxscope import ppo
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.agents.scripted import partner
from jaxscope.discrete import discrete
from jaxscope.runs.panels import resolve
from jaxscope.spaces import Box, Discrete
from jaxscope.types import Renders
from jaxscope.zsc import self_play

GAMES = ["pmr", "predator_prey", "predator_prey?sight=inf"]
#: What the particle environments' five actions push: x, y.
THRUSTS = jnp.array([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])


@pytest.mark.parametrize("name", GAMES)
def test_a_discrete_game_is_the_continuous_one_under_the_mapped_actions(name):
    env, inner = jaxscope.make(f"discrete:{name}"), jaxscope.make(name)
    assert env.action_space() == Discrete(5)
    assert env.observation_space() == inner.observation_space()

    def step(carry, time):
        state = carry[1]
        act_key, step_key = jax.random.split(jax.random.fold_in(jax.random.key(2), time))
        chosen = jax.random.randint(act_key, (2, 64), 0, 5)
        keys = jax.random.split(step_key, 64)
        ours = jax.vmap(env.step)(keys, state, dict(zip(env.agents, chosen, strict=True)))
        theirs = jax.vmap(inner.step)(
            jax.random.clone(keys), state, dict(zip(env.agents, THRUSTS[chosen], strict=True))
        )
        paid = env.team_reward(ours[2]), inner.team_reward(theirs[2])
        seats = jax.vmap(env.by_seat)(*ours[:2]), jax.vmap(inner.by_seat)(*theirs[:2])
        return ours[:2], ((ours, paid[0], seats[0]), (theirs, paid[1], seats[1]))

    keys = jax.random.split(jax.random.key(1), 64)
    start = jax.vmap(env.reset)(keys)
    jax.tree.map(np.testing.assert_array_equal, start, jax.vmap(inner.reset)(jax.random.clone(keys)))
    ours, theirs = jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(inner.horizon))[1])(start)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)
    assert ours[1].sum() > 0
    assert ours[0][3]["__all__"].any()


def test_every_number_has_two_actions_at_its_bounds():
    env = discrete(Steered())
    assert env.action_space() == Discrete(5)
    shown = [env.numbers(jnp.asarray(action)).tolist() for action in range(5)]
    assert shown == [[0.5, 0.5], [-0.5, 0.5], [1.5, 0.5], [0.5, -0.5], [0.5, 1.5]]


def test_what_is_discrete_already_or_unbounded_is_refused():
    for name in ("matching/4", "lbf/8x8-2p-3f", "discrete:pmr"):
        with pytest.raises(ValueError, match=f"discrete:{name}: {name} has discrete actions already"):
            jaxscope.make(f"discrete:{name}")
    with pytest.raises(ValueError, match="there is no environment 'pmx'"):
        jaxscope.make("discrete:pmx")

    class Whole(Clock):
        def action_space(self, agent=None):
            return Box(0, 4, (2,), integer=True)

    class Endless(Clock):
        def action_space(self, agent=None):
            return Box(-float("inf"), float("inf"), (2,))

    for inner in (Whole(), Endless()):
        with pytest.raises(ValueError, match="must be bounded real numbers"):
            discrete(inner)


def test_options_and_names_are_those_of_the_game_within():
    env = jaxscope.make("discrete:predator_prey?sight=inf", horizon=30)
    assert env.name == "discrete:predator_prey?horizon=30&sight=inf"
    assert env == jaxscope.make(env.name)
    assert env != jaxscope.make("predator_prey?horizon=30&sight=inf")
    assert (env.horizon, env.shared_reward, env.pays_shaping) == (30, True, False)


def test_it_is_drawn_where_the_game_within_is():
    env, inner = jaxscope.make("discrete:pmr"), jaxscope.make("pmr")
    _, state = env.reset(jax.random.key(0))
    assert isinstance(env, Renders)
    assert isinstance(inner, Renders)
    np.testing.assert_array_equal(env.render(state), inner.render(state))
    assert not isinstance(discrete(Steered()), Renders)


def test_a_continuous_game_of_jaxmarls():
    env = jaxscope.make("discrete:jaxmarl:MPE_simple_spread_v3?action_type=Continuous&num_agents=2&max_steps=3")
    assert env.action_space() == Discrete(11)  # JaxMARL's five numbers in [0, 1]: unused, -x, +x, -y, +y
    _, state = env.reset(jax.random.key(0))
    at = env.step_env(jax.random.key(1), state, {"agent_0": jnp.int32(0), "agent_1": jnp.int32(6)})[1]
    np.testing.assert_allclose(at.inner.p_vel[0], [0, 0], atol=1e-6)
    assert at.inner.p_vel[1, 0] > 0


def test_partners_are_those_that_play_anything():
    assert jaxscope.list_partners("discrete:pmr") == jaxscope.list_partners("discrete:pmr", "bound") == ["random"]
    with pytest.raises(ValueError, match="there is no environment 'pmx'"):
        jaxscope.list_partners("discrete:pmx")
    env = jaxscope.make("discrete:pmr")
    with pytest.raises(ValueError, match=r"no scripted partner 'always-north'.*has: random.* in pmr itself only"):
        partner("always-north", env)
    with pytest.raises(ValueError, match="has no held-out partners; name others: random, or folders of runs"):
        resolve(["held-out"], env)


def test_self_play_trains():
    env = jaxscope.make("discrete:pmr?horizon=5")
    learning = ppo.PPOConfig(frames=48, num_envs=4, num_steps=6, epochs=1, minibatches=2, network=NetworkConfig(4))
    config = self_play.Config(learning)
    before = self_play.init(config, env, (), None, jax.random.key(0))
    after, metrics = jax.jit(lambda learner: self_play.iteration(config, env, (), learner))(before)
    changes = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), before.params, after.params)
    assert max(jax.tree.leaves(changes)) > 0
    assert 1.5 < float(metrics.means["entropy"]) <= np.log(5) + 1e-5

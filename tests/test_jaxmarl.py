"""JaxMARL's environments train here, and ours run under JaxMARL's wrappers."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxscope
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.jaxmarl import JaxMARL, from_jaxmarl, to_jaxmarl
from jaxscope.ppo import PPOConfig
from jaxscope.spaces import Box, Discrete
from jaxscope.zsc import self_play

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import jaxmarl
    from jaxmarl.environments import MultiAgentEnv
    from jaxmarl.wrappers.baselines import CTRolloutManager, LogWrapper

SPREAD = "jaxmarl:MPE_simple_spread_v3?max_steps=3&num_agents=2&num_landmarks=2"
SPEAKER_LISTENER = "jaxmarl:MPE_simple_speaker_listener_v4?max_steps=3"
OVERCOOKED = "jaxmarl:overcooked?max_steps=5"
GAMES = {
    "speaker-listener": SPEAKER_LISTENER,  # observations and numbers of actions differ between the agents
    "overcooked": OVERCOOKED,
}
# A player beside the only food, which stands in the middle, gets it by LOAD if strong enough.
FORAGING = "lbf/3x3-2p-1f?max_steps=4"


def make(name: str) -> JaxMARL:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "OvercookedV2 is now released", DeprecationWarning)
        env = jaxscope.make(name)
    assert isinstance(env, JaxMARL)
    return env


def theirs_of(env: JaxMARL):
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.filterwarnings("ignore", "OvercookedV2 is now released", DeprecationWarning)
        return jaxmarl.make(env.environment, **dict(env.options))


def test_only_the_adapter_imports_jaxmarl_and_quietly():
    script = """
import sys
import jaxscope
jaxscope.make("lbf/8x8-2p-3f")
assert "jaxmarl" not in sys.modules
sys.modules["jaxmarl"] = None
try:
    jaxscope.make("jaxmarl:MPE_simple_spread_v3")
except ImportError as error:
    print(error)
del sys.modules["jaxmarl"]
streams = sys.stdout, sys.stderr, sys.__stdout__
import jaxscope.jaxmarl
assert "jaxmarl" in sys.modules
assert streams == (sys.stdout, sys.stderr, sys.__stdout__)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['environments of JaxMARL need JaxMARL: pip install "jaxscope[jaxmarl]"']


@pytest.mark.parametrize("game", ["speaker-listener", "overcooked"])
def test_self_play_trains(game):
    env = make(GAMES[game])
    cfg = self_play.Config(
        PPOConfig(frames=48, num_envs=4, num_steps=6, epochs=1, minibatches=2, network=NetworkConfig(8))
    )
    learner = jax.jit(self_play.init, static_argnums=(0, 1, 2, 3))(cfg, env, (), None, jax.random.key(0))
    iteration = jax.jit(self_play.iteration, static_argnums=(0, 1, 2))
    episodes = 0
    for _ in range(2):
        before = learner.params
        learner, metrics = iteration(cfg, env, (), learner)
        assert all(np.isfinite(value).all() for value in jax.tree.leaves(metrics))
        moved = jax.tree.map(lambda old, new: bool((old != new).any()), before, learner.params)
        assert any(jax.tree.leaves(moved))
        episodes += int(metrics.episodes.count)
    assert episodes == 4 * (12 // env.horizon)


@pytest.mark.parametrize("actions", ["Discrete", "Continuous"])
def test_self_play_learns_to_spread(actions):
    """Whoever drifts at random is paid about -20 a game, mostly for the way from the landmarks."""
    env = make(f"jaxmarl:MPE_simple_spread_v3?action_type={actions}&max_steps=24&num_agents=2&num_landmarks=2")
    assert env.horizon == 25
    iterations, num_envs = 30, 128
    cfg = self_play.Config(
        PPOConfig(
            frames=iterations * num_envs * env.horizon,
            num_envs=num_envs,
            num_steps=env.horizon,
            minibatches=4,
            learning_rate=3e-3,
            network=NetworkConfig(32),
        )
    )
    first = jax.jit(lambda: self_play.init(cfg, env, (), None, jax.random.key(0)))()
    iteration = jax.jit(lambda learner: self_play.iteration(cfg, env, (), learner))
    learner, returns = first, []
    for _ in range(iterations):
        learner, metrics = iteration(learner)
        assert all(np.isfinite(value).all() for value in jax.tree.leaves(metrics))
        returns.append(float(metrics.episodes.team_return / metrics.episodes.count))
    moved = jax.tree.map(lambda old, new: bool((old != new).any()), first.params, learner.params)
    assert all(jax.tree.leaves(moved)), moved
    assert np.mean(returns[-5:]) > returns[0] + 3.0


@pytest.mark.parametrize("game", ["speaker-listener", "overcooked"])
def test_steps_equal_jaxmarls(game):
    """Observations, rewards, ends and events of two episodes, and what `info` says beyond JaxMARL's."""
    env = make(GAMES[game])
    theirs: Any = theirs_of(env)
    assert env.agents == tuple(theirs.agents)
    sizes = {agent: int(theirs.action_space(agent).n) for agent in env.agents}
    our_step, actions_of = jax.jit(env.step), env.action_space()
    assert isinstance(actions_of, Discrete)

    @jax.jit
    def their_step(key, same_key, state, actions):
        """The observations before any reset, and the step."""
        return theirs.step_env(jax.random.split(same_key)[0], state, actions)[0], theirs.step(key, state, actions)

    with jax.numpy_rank_promotion("allow"):
        their_obs, their_state = jax.jit(theirs.reset)(jax.random.key(0))
    obs, state = jax.jit(env.reset)(jax.random.key(0))
    _assert_shown(env, obs, their_obs)
    for time in range(1, 2 * env.horizon + 1):
        step_key, action_key = jax.random.split(jax.random.fold_in(jax.random.key(1), time))
        drawn = jax.random.randint(action_key, (env.num_agents,), 0, actions_of.n)
        actions = dict(zip(env.agents, drawn, strict=True))
        their_actions = {agent: action % sizes[agent] for agent, action in actions.items()}
        with jax.numpy_rank_promotion("allow"):
            same_keys = jax.random.clone(step_key), jax.random.clone(step_key)
            last, their_results = their_step(*same_keys, their_state, their_actions)
        their_obs, their_state, their_rewards, their_dones, their_info = their_results
        obs, state, rewards, dones, info = our_step(step_key, state, actions)
        _assert_shown(env, obs, their_obs)
        _assert_shown(env, info["final_observation"], last)
        assert rewards == {agent: their_rewards[agent] for agent in env.agents}
        assert dones == their_dones
        assert bool(info["truncated"]) == (time % env.horizon == 0)
        assert not info["terminated"]
        assert int(state.time) == time % env.horizon
        for name, by_agent in their_info.items():
            np.testing.assert_array_equal(info["events"][name], [by_agent[agent] for agent in env.agents])
    assert not all(bool((obs[agent] == info["final_observation"][agent]).all()) for agent in env.agents)


def _assert_shown(env, ours, theirs):
    """Their observations, flattened and followed by zeros where sizes differ."""
    assert set(ours) == set(env.agents)
    for agent in env.agents:
        assert ours[agent].shape == env.observation_space().shape
        assert bool(env.observation_space().contains(ours[agent]))
        rest = ours[agent].reshape(-1)[theirs[agent].size :]
        np.testing.assert_array_equal(ours[agent].reshape(-1)[: theirs[agent].size], theirs[agent].reshape(-1))
        assert not rest.any()


def test_heterogeneous_spaces():
    env = make(SPEAKER_LISTENER)
    assert env.agents == ("speaker_0", "listener_0")
    assert env.observation_space().shape == (11,)  # 3 and 11
    assert env.action_space() == Discrete(5)  # 3 and 5
    assert env.get_obs(env.reset(jax.random.key(0))[1])["speaker_0"].shape == (11,)


@pytest.mark.parametrize(("layout", "shape"), [("cramped_room", (4, 5, 26)), ("asymm_advantages", (5, 9, 26))])
def test_overcooked_shape_is_the_true_one(layout, shape):
    env = make(f"jaxmarl:overcooked?layout={layout}")
    obs, _ = jax.jit(env.reset)(jax.random.key(0))
    assert env.observation_space() == Box(0.0, 255.0, shape, integer=True)
    assert obs["agent_0"].shape == shape


def test_continuous_actions_are_a_box():
    env = make("jaxmarl:MPE_simple_spread_v3?action_type=Continuous&num_agents=2")
    assert env.action_space() == Box(0.0, 1.0, (5,))
    assert env.horizon == 26


@pytest.mark.parametrize(
    ("name", "horizon", "still"),
    [
        ("jaxmarl:HeuristicEnemySMAX?max_steps=2&scenario=3m", 3, 4),
        ("jaxmarl:coin_game?num_inner_steps=2&num_outer_steps=2", 4, 4),
        ("jaxmarl:switch_riddle", 6, 0),
        ("jaxmarl:switch_riddle?horizon=2", 2, 0),
    ],
)
def test_a_game_without_end_is_truncated_at_the_horizon(name, horizon, still):
    env = make(name)
    assert env.horizon == horizon
    _, state = env.reset(jax.random.key(0))
    step = jax.jit(env.step_env)
    for time in range(1, horizon + 1):
        key = jax.random.fold_in(jax.random.key(1), time)
        _, state, _, dones, info = step(key, state, dict.fromkeys(env.agents, jnp.int32(still)))
        assert bool(dones["__all__"]) == bool(info["truncated"]) == (time == horizon)
        assert not info["terminated"]


def test_an_end_before_the_limit_is_terminal():
    env = make("jaxmarl:switch_riddle?horizon=4")
    _, state = env.reset(jax.random.key(0))
    tell: dict[str, Any] = dict.fromkeys(env.agents, jnp.int32(2))
    *_, dones, info = env.step_env(jax.random.key(1), state, tell)
    assert dones["__all__"]
    assert info["terminated"]
    assert not info["truncated"]


def test_team_reward():
    rewards = {"agent_0": jnp.float32(1.0), "agent_1": jnp.float32(2.0)}
    assert make(SPREAD).team_reward(rewards) == 1.5
    assert make(SPREAD + "&shared_reward=false").team_reward(rewards) == 3.0


def test_equal_by_name_and_options():
    options: dict[str, Any] = {"max_steps": 3, "num_agents": 2, "num_landmarks": 2}
    env = from_jaxmarl("MPE_simple_spread_v3", **options)
    assert env == make(SPREAD)
    assert hash(env) == hash(make(SPREAD))
    assert env.name == SPREAD
    assert env != from_jaxmarl("MPE_simple_spread_v3", **options, local_ratio=0.25)
    assert env != from_jaxmarl("MPE_simple_spread_v3", **options, horizon=2)
    for name in (SPREAD, SPREAD + "&horizon=2&shared_reward=false", "jaxmarl:SMAX?scenario=3m"):
        assert make(name).name == name


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("MPE_simple_spred_v3", {}, "Did you mean 'MPE_simple_spread_v3'"),
        ("MPE_simple_spread_v3", {"max_step": 3}, "no option 'max_step'. Did you mean 'max_steps'"),
        ("switch_riddle", {"agents": 3}, "switch_riddle with the options"),
        ("overcooked", {"layout": "cramped"}, "no layout 'cramped'. Did you mean 'cramped_room'"),
        ("switch_riddle", {"num_agents": [3]}, "must be a number"),
        ("switch_riddle?horizon=3", {"horizon": 3}, "horizon already"),
        ("switch_riddle?horizon", {}, "switch_riddle\\?option=value"),
        ("switch_riddle", {"horizon": 7}, "horizon = 7 must be 1 to 6"),
        ("hanabi", {}, "no time limit; give one"),
        ("storm_2p", {}, "an array of observations under its name"),
        ("MPE_simple_world_comm_v3", {}, "the same shape for all agents"),
    ],
)
def test_bad_input_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        from_jaxmarl(name, **options)


def test_our_environment_as_theirs():
    env: Any = jaxscope.make(FORAGING)
    theirs: Any = to_jaxmarl(env)
    assert isinstance(theirs, MultiAgentEnv)
    assert (theirs.name, theirs.agents, theirs.num_agents) == (env.name, ["agent_0", "agent_1"], 2)
    assert theirs.agent_classes == {"agents": theirs.agents}
    obs, state = theirs.reset(jax.random.PRNGKey(0))
    our_obs, our_state = jax.jit(env.reset)(jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, (obs, state), (our_obs, our_state))
    jax.tree.map(np.testing.assert_array_equal, theirs.get_obs(state), our_obs)
    jax.tree.map(np.testing.assert_array_equal, theirs.get_avail_actions(state), jax.jit(env.get_avail_actions)(state))
    for agent in theirs.agents:
        space: Any = theirs.observation_space(agent)
        assert (obs[agent].shape, obs[agent].dtype) == (space.shape, space.dtype)
        assert bool(space.contains(obs[agent]))
        assert (theirs.action_spaces[agent].n, theirs.action_spaces[agent].shape) == (6, ())
    ones = to_jaxmarl(jaxscope.make("matching/4")).get_avail_actions(None)
    assert {agent: mask.tolist() for agent, mask in ones.items()} == dict.fromkeys(("agent_0", "agent_1"), [True] * 4)


def test_adapters_share_compiled_code_only_if_equal():
    short, long = (to_jaxmarl(jaxscope.make(name)) for name in ("matching/4", "matching/4-2r"))
    assert short != long
    assert short == to_jaxmarl(jaxscope.make("matching/4"))
    assert hash(short) == hash(to_jaxmarl(jaxscope.make("matching/4")))
    _, state = short.reset(jax.random.key(0))
    actions: dict[str, Any] = dict.fromkeys(short.agents, jnp.int32(0))
    assert short.step(jax.random.key(1), state, actions)[3]["__all__"]
    assert not long.step(jax.random.key(1), state, actions)[3]["__all__"]


def _mostly_load(key, num_envs: int, agents: list[str]) -> dict[str, jax.Array]:
    load_key, other_key = jax.random.split(key)
    shape = (len(agents), num_envs)
    drawn = jnp.where(jax.random.bernoulli(load_key, 0.7, shape), 5, jax.random.randint(other_key, shape, 0, 6))
    return dict(zip(agents, drawn, strict=True))


def test_log_wrapper_sums_our_returns():
    num_envs = 8
    env = LogWrapper(to_jaxmarl(jaxscope.make(FORAGING)))
    _, state = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), num_envs))
    step = jax.jit(jax.vmap(env.step))
    returns, lengths = np.zeros((num_envs, 2), np.float32), np.zeros((num_envs, 1))
    ended = []
    for time in range(9):
        step_key, action_key = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(1), time))
        actions = _mostly_load(action_key, num_envs, env.agents)
        _, state, rewards, dones, info = step(jax.random.split(step_key, num_envs), state, actions)
        returns += np.stack([rewards[agent] for agent in env.agents], -1)
        lengths += 1
        assert {name: value.shape for name, value in info.items()} == dict.fromkeys(info, (num_envs, 2))
        done = np.asarray(dones["__all__"])
        np.testing.assert_array_equal(info["returned_episode"], np.repeat(done[:, None], 2, axis=1))
        np.testing.assert_array_equal(info["terminated"] | info["truncated"], info["returned_episode"])
        np.testing.assert_array_equal(np.asarray(info["returned_episode_returns"])[done], returns[done])
        np.testing.assert_array_equal(np.asarray(info["returned_episode_lengths"])[done], lengths[done].repeat(2, 1))
        np.testing.assert_array_equal(np.asarray(info["food_loaded"]) > 0, np.stack([*rewards.values()], -1) > 0)
        ended.append(returns[done].sum(-1))
        returns[done], lengths[done] = 0, 0
    # A game that ends in its first or second step earns 1, one that is cut earns nothing: both kinds must have come up.
    assert {0.0, 1.0} <= set(np.concatenate(ended).round(5).tolist())


def test_rollout_manager_steps_our_environment():
    num_envs = 4
    ours = jaxscope.make(FORAGING)
    logged: Any = LogWrapper(to_jaxmarl(ours))
    manager = CTRolloutManager(logged, batch_size=num_envs)
    obs, state = manager.batch_reset(jax.random.PRNGKey(0))
    size = ours.observation_space().shape[0]
    assert obs["agent_0"].shape == (num_envs, size + 2)
    assert obs["__all__"].shape == (num_envs, 2 * size)
    masks = manager.get_valid_actions(state.env_state)
    assert [masks[agent].shape for agent in ours.agents] == [(num_envs, 6)] * 2
    assert manager.batch_sample(jax.random.PRNGKey(2), "agent_1").shape == (num_envs,)
    our_state = state.env_state
    our_step = jax.jit(jax.vmap(lambda key, state, actions: ours.step(key, state, actions)))
    team_return, finished = np.zeros(num_envs, np.float32), 0
    for time in range(ours.horizon + 2):
        step_key, action_key = jax.random.split(jax.random.fold_in(jax.random.key(1), time))
        actions = _mostly_load(action_key, num_envs, manager.agents)
        raw = jax.random.key_data(jax.random.clone(step_key))
        obs, state, rewards, dones, info = manager.batch_step(raw, state, actions)
        our_obs, our_state, our_rewards, our_dones, _ = our_step(
            jax.random.split(step_key, num_envs), our_state, actions
        )
        np.testing.assert_array_equal(obs["__all__"], jnp.concatenate([our_obs[a] for a in ours.agents], -1))
        np.testing.assert_allclose(rewards["__all__"], ours.team_reward(our_rewards))
        jax.tree.map(np.testing.assert_array_equal, dones, our_dones)
        team_return += np.asarray(rewards["__all__"])
        done = np.asarray(dones["__all__"])
        np.testing.assert_allclose(np.asarray(info["returned_episode_returns"]).sum(-1)[done], team_return[done])
        shown = jax.tree.map(lambda x, ended=info["returned_episode"]: jnp.nanmean(jnp.where(ended, x, jnp.nan)), info)
        assert not done.any() or all(np.isfinite(value) for value in shown.values())
        team_return[done] = 0
        finished += int(done.sum())
    assert finished >= num_envs


def test_the_loop_of_jaxmarls_ppo_scripts_runs():
    """Agent-major batches of actors, actions with a further axis, every number of `info` per actor."""
    num_envs, num_steps = 4, 6
    env = LogWrapper(to_jaxmarl(jaxscope.make(FORAGING)))
    num_actors = env.num_agents * num_envs
    size = env.observation_space(env.agents[0]).shape[0]
    optimiser = optax.adam(0.01)
    weights = jnp.zeros((size, env.action_space(env.agents[0]).n))

    def batchify(by_agent):
        return jnp.stack([by_agent[agent] for agent in env.agents]).reshape((num_actors, -1))

    def env_step(runner, _):
        weights, state, obs, rng = runner
        rng, action_rng, step_rng = jax.random.split(rng, 3)
        obs_batch = batchify(obs)
        action = jax.random.categorical(action_rng, obs_batch @ weights)
        by_agent = action.reshape((env.num_agents, num_envs, -1))
        actions = {agent: by_agent[i] for i, agent in enumerate(env.agents)}
        obs, state, reward, done, info = jax.vmap(env.step)(jax.random.split(step_rng, num_envs), state, actions)
        info = jax.tree.map(lambda x: x.reshape(num_actors), info)
        transition = (obs_batch, action, batchify(reward).squeeze(-1), batchify(done).squeeze(-1), info)
        return (weights, state, obs, rng), transition

    def loss(weights, obs, action, reward):
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(obs @ weights), action[..., None], -1)[..., 0]
        return -(log_prob * (reward - reward.mean())).mean()

    @jax.jit
    def update(runner, opt_state):
        runner, (obs, action, reward, done, info) = jax.lax.scan(env_step, runner, None, num_steps)
        value, gradient = jax.value_and_grad(loss)(runner[0], obs, action, reward)
        updates, opt_state = optimiser.update(gradient, opt_state)
        runner = (optax.apply_updates(runner[0], updates), *runner[1:])
        return runner, opt_state, value, done.sum(), jax.tree.map(jnp.mean, info)

    obs, state = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), num_envs))
    runner, opt_state = (weights, state, obs, jax.random.PRNGKey(1)), optimiser.init(weights)
    for _ in range(2):
        runner, opt_state, value, ended, metric = update(runner, opt_state)
        assert np.isfinite(value)
        assert ended >= num_actors  # all episodes are at most four steps long
        assert all(np.isfinite(mean) for mean in metric.values())
    assert bool((runner[0] != 0).any())

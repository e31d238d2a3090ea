"""Driving `lbforaging` itself: games, play, and its states in our form."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import lbforaging  # noqa: F401  (registers the Foraging games)
import numpy as np
from lbforaging.foraging.environment import ForagingEnv

from jaxscope.envs.lbf import LBF, LOAD, MOVES, State


class Unchecked(ForagingEnv):
    """The reference without its declared observation space, which is wrong for layers and non-square fields."""

    def _get_observation_space(self) -> gymnasium.spaces.Box:
        env = self.ours
        return gymnasium.spaces.Box(-np.inf, np.inf, env.observation_space().shape, np.float32)

    def __init__(self, env: LBF, **settings: Any) -> None:
        self.ours = env
        super().__init__(**settings)


def reference(env: LBF) -> Any:
    """The same game of the reference package; registered ones come from gymnasium."""
    settings = {
        "players": env.num_agents,
        "min_player_level": env.min_player_level,
        "max_player_level": env.max_player_level,
        "min_food_level": env.min_food_level,
        "max_food_level": env.max_food_level,
        "field_size": (env.rows, env.cols),
        "max_num_food": env.num_foods,
        "sight": env.window,
        "max_episode_steps": env.max_steps,
        "force_coop": env.force_coop,
        "grid_observation": env.grid_observation,
        "penalty": env.penalty,
        "normalize_reward": env.normalize_reward,
        "observe_agent_levels": env.observe_agent_levels,
    }
    if env.grid_observation or env.rows != env.cols or env.num_foods > 4:
        return Unchecked(env, **settings)
    name = f"Foraging-{env.rows}x{env.cols}-{env.num_agents}p-{env.num_foods}f-v3"
    return gymnasium.make(name, disable_env_checker=True, **settings).unwrapped


def fresh(game: Any, seed: int | None = None) -> None:
    """A reset in which no player of the last game blocks a cell."""
    for player in game.players:
        player.position = None
    game.reset(seed=seed)


def food_cells(game: Any) -> np.ndarray:
    """Cells of the foods in row-major order, -1 for those that found no place: `[F, 2]`."""
    cells = np.argwhere(game.field > 0)
    return np.concatenate([cells, np.full((game.max_num_food - len(cells), 2), -1)])


def snapshot(game: Any, foods: np.ndarray) -> State:
    """The state of the reference in our form; `foods` are the cells at the reset."""
    levels = np.where(foods[:, 0] >= 0, game.field[foods[:, 0], foods[:, 1]], 0)
    return State._make(
        np.asarray(value, np.int32)
        for value in (
            [player.position for player in game.players],
            [player.level for player in game.players],
            foods,
            levels,
            game._food_spawned,
            game.current_step,
        )
    )


def greedy(game: Any, rng: np.random.Generator, noise: float) -> list[int]:
    """Each player walks to its nearest food and loads; with probability `noise` it acts at random."""
    cells = np.argwhere(game.field > 0)
    actions = []
    for player in game.players:
        away = cells - np.array(player.position)
        nearest = away[np.abs(away).sum(1).argmin()]
        if rng.random() < noise:
            action = int(rng.integers(6))
        elif np.abs(nearest).sum() == 1:
            action = LOAD
        else:
            towards = [a for a in range(1, 5) if MOVES[a] @ nearest > 0]
            action = int(rng.choice(towards))
        actions.append(action)
    return actions


class Record(NamedTuple):
    """Transitions of the reference, one after the other; a leading axis everywhere."""

    state: State
    valid: np.ndarray  # [n, A, 6] before the step
    action: np.ndarray  # [n, A]
    next_state: State
    obs: np.ndarray  # [n, A, ...] after the step
    reward: np.ndarray  # [n, A]
    done: np.ndarray  # [n]
    first_obs: np.ndarray  # [n, A, ...] before the step


def record(env: LBF, episodes: int, seed: int) -> Record:
    """Whole episodes of the reference, in turn with random, wild and nearly greedy play."""
    game, rng = reference(env), np.random.default_rng(seed)
    rows: list[tuple] = []
    for episode in range(episodes):
        fresh(game, seed if episode == 0 else None)
        foods = food_cells(game)
        state, obs, done = snapshot(game, foods), np.stack(game.test_make_gym_obs()), False
        while not done:
            some_food = game.field.any()
            noise = (1.0, 0.5, 0.05)[episode % 3]
            action = greedy(game, rng, noise) if some_food else [0] * env.num_agents
            valid = np.array([[a in map(_number, game._valid_actions[p]) for a in range(6)] for p in game.players])
            next_obs, reward, done, _, _ = game.step(action)
            next_state, next_obs = snapshot(game, foods), np.stack(next_obs)
            rows.append((state, valid, np.array(action, np.int32), next_state, next_obs, reward, done, obs))
            state, obs = next_state, next_obs
    return Record(*(_stack(column) for column in zip(*rows, strict=True)))


def _number(action: Any) -> int:
    return action.value


def _stack(column: tuple) -> Any:
    if isinstance(column[0], State):
        return State._make(np.stack(field) for field in zip(*column, strict=True))
    return np.stack(column)

"""Level-Based Foraging: players of different levels collect food whose level one of them alone may not reach.

Step for step `lbforaging` 2.0.0 (the `Foraging-*-v3` games), with one difference: its time limit ends a game as
`terminated`, here it is `truncated`. Source of the game: Albrecht and Ramamoorthy (2013); Papoudakis et al. (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from jaxscope.spaces import Box, Discrete
from jaxscope.types import Actions, Environment, Observations

from . import _lbf_names, _lbf_observation, _lbf_placement, _lbf_render

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)
#: Steps (rows, columns) of the six actions.
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)], np.int32)

EXAMPLES = (
    "lbf/8x8-2p-3f",
    "lbf/8x8-2p-3f-coop",
    "lbf/2s-8x8-2p-3f",
    "lbf/2s-8x8-2p-3f-coop",
    "lbf/2s-10x10-3p-3f",
    "lbf/15x15-4p-5f",
)


class State(NamedTuple):
    """One game; positions are (row, column) from the top left."""

    position: Int[Array, "A 2"]
    level: Int[Array, " A"]
    food_position: Int[Array, "F 2"]  # row-major at the reset and fixed since; never placed: last, at (-1, -1)
    food_level: Int[Array, " F"]  # 0 when eaten or never placed
    total_level: Int[Array, ""]  # sum of the food levels at the reset
    time: Int[Array, ""]  # steps taken


@dataclass(frozen=True)
class LBF(Environment):
    """The foraging game for `num_agents` players with actions NONE, NORTH, SOUTH, WEST, EAST, LOAD.

    All move at once; players who want the same cell stay. Loading succeeds when the levels of the loaders beside a food
    reach its level, and pays each of them `own level * food level / sum of the loaders' levels`, divided by the level
    of all food when `normalize_reward`, so that a team that eats everything earns 1.

    Args:
        rows, cols: size of the field, at least 3; food stands off the border and more than 2 steps from other food.
        num_agents: players.
        num_foods: foods at the reset; fewer where no cell is left for one.
        sight: players see this many cells each way, in a window cut off at the border; None: everything.
        force_coop: every food has the highest level allowed.
        max_steps: time limit.
        min_player_level, max_player_level: bounds of the uniform player levels, at least 1.
        min_food_level, max_food_level: bounds of the uniform food levels, at least 1; the upper one is by default the
            sum of the three lowest player levels.
        grid_observation: observe three layers (player levels, food levels, free cells) of the `2 * sight + 1` square
            around oneself, `[3, 2s + 1, 2s + 1]`, instead of the list `(row, column, level)` of the visible foods,
            of oneself and of the visible players, `[3 * (foods + players)]`. In lists an absent entry is (-1, -1, 0).
        penalty: subtracted from each player of a group that is too weak for its food, at least 0.
        normalize_reward: see above; otherwise players get `own level * food level`.
        observe_agent_levels: whether player levels are shown (lists lack that column without, layers show 1).

    Raises:
        ValueError: a setting is out of its range.
    """

    rows: int = 8
    cols: int = 8
    num_agents: int = 2
    num_foods: int = 3
    sight: int | None = None
    force_coop: bool = False
    max_steps: int = 50
    min_player_level: int = 1
    max_player_level: int = 2
    min_food_level: int = 1
    max_food_level: int | None = None
    grid_observation: bool = False
    penalty: float = 0.0
    normalize_reward: bool = True
    observe_agent_levels: bool = True

    def __post_init__(self) -> None:
        for wrong, allowed in self._limits():
            if wrong:
                raise ValueError(f"no such foraging game: {allowed}")

    def _limits(self) -> list[tuple[bool, str]]:
        """Which limits are broken, each with its message."""
        at_least_one = ("num_agents", "num_foods", "max_steps", "min_player_level", "min_food_level")
        small = [name for name in at_least_one if getattr(self, name) < 1]
        sure_food_level = self.max_food_level or min(3, self.num_agents) * self.min_player_level
        return [
            (min(self.rows, self.cols) < 3, f"a field needs 3 x 3 cells or more, not {self.rows} x {self.cols}"),
            (bool(small), f"{', '.join(f'{name} = {getattr(self, name)}' for name in small)}, must be at least 1"),
            (
                self.num_agents > self.rows * self.cols,
                f"{self.num_agents} players do not fit on {self.rows} x {self.cols} cells",
            ),
            (self.sight is not None and self.sight < 1, f"sight = {self.sight}, must be at least 1 or None"),
            (
                self.max_player_level < self.min_player_level,
                f"max_player_level = {self.max_player_level} is below min_player_level = {self.min_player_level}",
            ),
            (
                self.max_food_level is not None and self.max_food_level < self.min_food_level,
                f"max_food_level = {self.max_food_level} is below min_food_level = {self.min_food_level}",
            ),
            (
                not self.force_coop and sure_food_level < self.min_food_level,
                f"min_food_level = {self.min_food_level} may exceed the sum of the three lowest player levels, "
                f"which can be {sure_food_level}; set max_food_level",
            ),
            (
                not (math.isfinite(self.penalty) and self.penalty >= 0),
                f"penalty = {self.penalty}, must be finite and at least 0",
            ),
        ]

    @property
    def name(self) -> str:
        return f"lbf/{_lbf_names.compose(self)}"

    @property
    def horizon(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.max_steps

    @property
    def window(self) -> int:
        """How far a player sees, in cells each way."""
        return max(self.rows, self.cols) if self.sight is None else self.sight

    @property
    def highest_food_level(self) -> int:
        return self.max_food_level or min(3, self.num_agents) * self.max_player_level

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        shown_level = self.max_player_level if self.observe_agent_levels else 1
        if self.grid_observation:
            side = 2 * self.window + 1
            return Box(0, max(shown_level, self.highest_food_level), (3, side, side))
        farthest = min(2 * self.window, max(self.rows, self.cols) - 1)
        length = 3 * self.num_foods + (3 if self.observe_agent_levels else 2) * self.num_agents
        return Box(-1, max(shown_level, self.highest_food_level, farthest), (length,))

    def action_space(self, agent: str | None = None) -> Discrete:
        del agent
        return Discrete(6)

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        """Players on uniform free cells, then foods one after the other on uniform allowed cells, uniform levels."""
        for_players, for_foods = jnp.split(
            jax.random.uniform(key, (self.num_agents + self.num_foods,)), [self.num_agents]
        )
        everywhere, interior, others, apart = _lbf_placement.tables(self.rows, self.cols)
        player_cell, for_levels = _lbf_placement.draw_cells(jnp.asarray(everywhere), others, for_players)
        free = jnp.asarray(interior)
        for i in range(self.num_agents):
            free = free & jnp.asarray(others)[player_cell[i]]
        food_cell, for_food_levels = _lbf_placement.draw_cells(free, apart, for_foods)
        food_cell = _lbf_placement.lowest(food_cell, self.num_foods)

        # Sorting moved the cells and not the numbers for their levels, which is no matter: the two are independent.
        level = _uniform_integer(for_levels, self.min_player_level, self.max_player_level)
        highest = self._max_food_level(level)
        food_level = _uniform_integer(for_food_levels, highest if self.force_coop else self.min_food_level, highest)
        placed = food_cell < self.rows * self.cols
        food_level = jnp.where(placed, food_level, 0)
        state = State(
            position=self._coordinates(player_cell),
            level=level,
            food_position=jnp.where(placed[:, None], self._coordinates(food_cell), -1),
            food_level=food_level,
            total_level=food_level.sum(),
            time=jnp.int32(0),
        )
        return self.get_obs(state), state

    def _coordinates(self, cell: Int[Array, " n"]) -> Int[Array, "n 2"]:
        return jnp.stack([cell // self.cols, cell % self.cols], -1)

    def _max_food_level(self, level: Int[Array, " A"]) -> Array:
        """The given one, or the sum of the three lowest player levels."""
        if self.max_food_level is not None:
            return jnp.int32(self.max_food_level)
        return _lbf_placement.lowest(level, 3).sum()

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        """One step; the game is deterministic and `key` unused.

        Events, 0 or 1 a player: `food_loaded` (took part in a load that succeeded), of these `loaded_alone` and
        `loaded_jointly`; `load_failed` (loaded beside food with too little strength; elsewhere LOAD does nothing).
        """
        del key
        action = jnp.stack([actions[agent] for agent in self.agents])
        position = self._moved(state, action)
        rewards, food_level, events = self._loaded(state, action)
        time = state.time + 1
        state = state._replace(position=position, food_level=food_level, time=time)

        terminated = (food_level == 0).all()
        truncated = ~terminated & (time >= self.max_steps)
        done = terminated | truncated
        obs = self.get_obs(state)
        info = {"terminated": terminated, "truncated": truncated, "final_observation": obs, "events": events}
        rewards = {agent: rewards[i] for i, agent in enumerate(self.agents)}
        dones = {**dict.fromkeys(self.agents, done), "__all__": done}
        return obs, state, rewards, dones, info

    def _moved(self, state: State, action: Int[Array, " A"]) -> Int[Array, "A 2"]:
        """Positions after all have moved at once.

        Who wants the same cell as another (wanting to stay counts) stays. That is decided once, so with three players
        one may enter a cell whose owner then is kept from leaving it: the two then share it, as in the reference.
        """
        row, col = state.position[:, 0], state.position[:, 1]
        wanted_row = row + (action == SOUTH) - (action == NORTH)
        wanted_col = col + (action == EAST) - (action == WEST)
        possible = self._enterable(state, wanted_row, wanted_col)
        wanted_row, wanted_col = jnp.where(possible, wanted_row, row), jnp.where(possible, wanted_col, col)
        same = (wanted_row[:, None] == wanted_row[None, :]) & (wanted_col[:, None] == wanted_col[None, :])
        alone = same.sum(-1) == 1
        return jnp.stack([jnp.where(alone, wanted_row, row), jnp.where(alone, wanted_col, col)], -1)

    def _enterable(self, state: State, row: Int[Array, " A"], col: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Whether cells lie inside and hold no food; players do not matter."""
        inside = (row >= 0) & (row < self.rows) & (col >= 0) & (col < self.cols)
        food_row, food_col = state.food_position[:, 0], state.food_position[:, 1]
        on_food = (row[:, None] == food_row[None, :]) & (col[:, None] == food_col[None, :])
        return inside & ~(on_food & (state.food_level > 0)[None, :]).any(-1)

    def _loaded(self, state: State, action: Int[Array, " A"]) -> tuple[Array, Array, dict[str, Array]]:
        """Rewards `[A]` float32, food levels after loading `[F]`, and events."""
        loads = _addressed(state) & (action == LOAD)[:, None]
        strength = (loads * state.level[:, None]).sum(0)
        enough = (strength >= state.food_level) & (strength > 0)
        worth = jnp.where(enough, state.food_level, 0).astype(jnp.float32)
        if self.normalize_reward:
            worth = worth / (strength * state.total_level).clip(1)
        gain = (loads * worth[None, :]).sum(-1) * state.level
        joined = (loads & enough[None, :]).any(-1)
        failed = (loads & ~enough[None, :]).any(-1)
        alone = (loads & (enough & (loads.sum(0) == 1))[None, :]).any(-1)
        events = {
            "food_loaded": joined,
            "loaded_alone": alone,
            "loaded_jointly": joined & ~alone,
            "load_failed": failed,
        }
        rewards = gain - self.penalty * failed if self.penalty else gain
        food_level = jnp.where(enough, 0, state.food_level)
        return rewards, food_level, {name: event.astype(jnp.int32) for name, event in events.items()}

    def get_obs(self, state: State) -> Observations:
        observe = _lbf_observation.layers if self.grid_observation else _lbf_observation.listing
        rows = observe(self, state)
        return {agent: rows[i] for i, agent in enumerate(self.agents)}

    def get_avail_actions(self, state: State) -> dict[str, Bool[Array, " 6"]]:
        """The actions that are not taken for NONE: moves to cells inside without food, LOAD beside food."""
        row, col = state.position[:, 0], state.position[:, 1]
        moves = [self._enterable(state, row + down, col + right) for down, right in MOVES[NORTH : EAST + 1]]
        rows = jnp.stack([jnp.ones_like(moves[0]), *moves, _addressed(state).any(-1)], -1)
        return {agent: rows[i] for i, agent in enumerate(self.agents)}

    @property
    def keys(self) -> dict[str, int]:
        """The keyboard of a person who plays."""
        return {"up": NORTH, "down": SOUTH, "left": WEST, "right": EAST, ".": NONE, "space": LOAD}

    @property
    def key_names(self) -> tuple[str, ...]:
        return ("wait", "north", "south", "west", "east", "load")

    def render(self, state: State) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of one game: players by colour, each thing with its level."""
        return _lbf_render.picture(self, state)


def _uniform_integer(uniform: Float[Array, " n"], low: int | Array, high: int | Array) -> Int[Array, " n"]:
    """Numbers from [0, 1) as integers from `low` to `high`, both included."""
    return low + jnp.floor(uniform * (high - low + 1)).astype(jnp.int32)


def _addressed(state: State) -> Bool[Array, "A F"]:
    """The one food that each player would load: the first of north, south, west, east of it.

    Resets keep foods so far apart that there is never a choice. They also place none on the border; in a state made by
    hand, food on the top row cannot be loaded from below nor food in the first column from the right.
    """
    row, col = state.food_position[:, 0][None, :], state.food_position[:, 1][None, :]
    down, right = row - state.position[:, :1], col - state.position[:, 1:]
    beside = (jnp.abs(down) + jnp.abs(right) == 1) & (state.food_level > 0)[None, :]
    beside &= ((down != -1) | (row > 0)) & ((right != -1) | (col > 0))
    order = jnp.where(beside, jnp.select([down == -1, down == 1, right == -1], [0, 1, 2], 3), 4)
    return beside & (order == order.min(-1, keepdims=True))


def parse(variant: str) -> LBF:
    """The game of a name without its family: `8x8-2p-3f`, `2s-8x8-2p-3f-coop`, `6x9-2p-2f?penalty=0.1&max_steps=80`.

    Raises:
        ValueError: the name is not of that form or asks for an impossible game.
    """
    return LBF(**_lbf_names.settings(variant, LBF))

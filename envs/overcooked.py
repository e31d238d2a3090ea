"""Overcooked: chefs fill pots with onions and tomatoes, start them, fetch dishes, and serve soups that are in demand.

Step for step `overcooked_ai` (overcooked-ai 1.1.0; with `old_dynamics`, overcooked 0.2.1): state, sparse and shaped
rewards per player, its 25 events and both of its observations. Source of the game: Carroll et al. (2019).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped, UInt8

from jaxscope import options_in_names
from jaxscope.spaces import Box, Discrete
from jaxscope.types import Actions, Environment, Observations

from . import (
    _overcooked_features,
    _overcooked_grid,
    _overcooked_recipes,
    _overcooked_render,
    _overcooked_start,
)
from . import _overcooked_kitchen as kitchens
from . import _overcooked_objects as objects
from ._overcooked_dynamics import EAST, INTERACT, NORTH, SOUTH, STAY, WEST, Step, step
from ._overcooked_events import OUR_EVENTS, REFERENCE_EVENTS, events  # noqa: F401
from ._overcooked_layouts import LAYOUTS
from ._overcooked_tables import Here, Tables, tables

EXAMPLES = (
    "overcooked/large_room",
    "overcooked/cramped_room",
    "overcooked/asymmetric_advantages",
    "overcooked/coordination_ring",
    "overcooked/forced_coordination",
    "overcooked/counter_circuit",
    "overcooked/counter_circuit_o_1order",
    "overcooked/cramped_room?observation=vector",
)
#: Settings of `_overcooked_recipes.recipes`.
RECIPE_SETTINGS = (
    "start_all_orders",
    "start_bonus_orders",
    "order_bonus",
    *(name for kinds in (_overcooked_recipes.VALUES, _overcooked_recipes.TIMES) for kind in kinds for name in kind),
)

SHAPING_SETTINGS = (
    "reward_shaping_factor",
    "placement_in_pot_reward",
    "dish_pickup_reward",
    "soup_pickup_reward",
)


class State(NamedTuple):
    """One game. Cells are numbered column by column from the top left: cell = x * height + y."""

    cell: Int[Array, " A"]
    orientation: Int[Array, " A"]  # NORTH, SOUTH, EAST, WEST
    held: Int[Array, " A"]  # what is in hand, see `_overcooked_objects`; 0 for nothing
    contents: Int[Array, " C"]  # what lies on each cell: on counters and in pots
    time: Int[Array, ""]  # steps taken
    layout: Int[Array, ""]  # which of the environment's layouts


@dataclass(frozen=True)
class Overcooked(Environment):
    """The kitchen for as many players as its layout has starts; actions NORTH, SOUTH, EAST, WEST, STAY, INTERACT.

    Rewards: each player is paid what it delivered (`sparse`) plus `reward_shaping_factor` times the shaped rewards that
    it earned; the team's reward is the sum. With the defaults that is 20 per soup in demand, 3 per ingredient put into
    a pot, 3 per dish taken while one is of use, and 5 per soup taken from a pot. `info["sparse"]` and `info["shaped"]`
    hold the two parts, `[A]` each, the latter without the factor; `info["shaping"]` is the part of the rewards that is
    shaping.

    Args:
        layout: a name, or a drawing with rows separated by `|` (X counter, O onions, T tomatoes, P pot, D dishes,
            S serving hatch, space or _ or . floor, digits starts). Several of one size, separated by `+`: each game is
            played in one that its reset draws, all in the same compiled functions.
        horizon: steps of every game, which only the horizon ends.
        observation: `grid`, the lossless layers `[W, H, 26]` for two players (see `_overcooked_grid`), or `vector`, the
            featurised one (see `_overcooked_features`).
        reward_shaping_factor: weight of the shaped rewards.
        old_dynamics: a pot starts by itself with its third ingredient, and only so.
        random_start_pos: players start on uniformly drawn distinct floor cells.
        rnd_obj_prob_thresh: with this probability each player starts with an object, each pot with ingredients, and
            such a pot cooking.
        max_num_ingredients: of a soup.
        num_pots: pots that the vector observation describes for each player, the nearest first.
        placement_in_pot_reward, dish_pickup_reward, soup_pickup_reward: the shaped rewards.
        start_all_orders: soups in demand, by their letters: `ooo,oot`; empty: all. None, here and below: the layout's.
        start_bonus_orders: of these, the ones that pay `order_bonus` times their value.
        order_bonus: see there.
        delivery_reward: value of every soup, or
        recipe_values: value of each order, or
        onion_value, tomato_value: value by ingredients; without any of these, and for other soups than orders, 20.
        cook_time, recipe_times, onion_time, tomato_time: steps that soups cook, given in the same ways; otherwise 20.

    Raises:
        ValueError: a layout or a setting is impossible; the message says which and what is allowed.
    """

    layout: str = "cramped_room"
    horizon: int = 400
    observation: Literal["grid", "vector"] = "grid"
    reward_shaping_factor: float = 1.0
    old_dynamics: bool = False
    random_start_pos: bool = False
    rnd_obj_prob_thresh: float = 0.0
    max_num_ingredients: int = 3
    num_pots: int = 2
    placement_in_pot_reward: float = 3.0
    dish_pickup_reward: float = 3.0
    soup_pickup_reward: float = 5.0
    start_all_orders: str | None = None
    start_bonus_orders: str | None = None
    order_bonus: float | None = None
    delivery_reward: float | None = None
    recipe_values: tuple[float, ...] | None = None
    onion_value: float | None = None
    tomato_value: float | None = None
    cook_time: int | None = None
    recipe_times: tuple[int, ...] | None = None
    onion_time: int | None = None
    tomato_time: int | None = None

    def __post_init__(self) -> None:
        # Drawings of the same kitchen are the same setting, so that the environment of a name equals its own.
        object.__setattr__(self, "layout", kitchens.canonical(self.layout))
        given = {name: value for name, value in vars(self).items() if name != "layout"}
        for name, value in options_in_names.check(given, Overcooked, "overcooked", but=("layout",)).items():
            object.__setattr__(self, name, value)
        for broken, problem in self._rules():
            if broken:
                raise ValueError(f"Overcooked: {problem}")
        _tables(self)

    def _rules(self) -> list[tuple[bool, str]]:
        """Whether the settings that concern one number each are broken, each with its message."""
        most = objects.MOST_INGREDIENTS
        return [
            (self.horizon < 1, f"horizon = {self.horizon} must be at least 1"),
            *(
                (not math.isfinite(getattr(self, name)), f"{name} = {getattr(self, name)} must be finite")
                for name in SHAPING_SETTINGS
            ),
            (self.num_pots < 1, f"num_pots = {self.num_pots} must be at least 1"),
            (
                not 0 <= self.rnd_obj_prob_thresh <= 1,
                f"rnd_obj_prob_thresh = {self.rnd_obj_prob_thresh} must be a probability",
            ),
            (
                not 1 <= self.max_num_ingredients <= most,
                f"max_num_ingredients = {self.max_num_ingredients} must be 1 to {most}",
            ),
        ]

    @property
    def name(self) -> str:
        options = options_in_names.changed(self, but=("layout",))
        return f"overcooked/{options_in_names.compose(self.layout, options)}"

    @property
    def pays_shaping(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        amounts = (self.placement_in_pot_reward, self.dish_pickup_reward, self.soup_pickup_reward)
        return self.reward_shaping_factor != 0 and any(amounts)

    @property
    def layouts(self) -> tuple[str, ...]:
        """Every layout that a game may be played in."""
        return tuple(self.layout.split("+"))

    @property
    def recipe_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in RECIPE_SETTINGS}

    @property
    def keys(self) -> dict[str, int]:
        """The keyboard of a person who plays."""
        return {"up": NORTH, "down": SOUTH, "right": EAST, "left": WEST, ".": STAY, "space": INTERACT}

    @property
    def key_names(self) -> tuple[str, ...]:
        return ("north", "south", "east", "west", "stay", "interact")

    @property
    def num_agents(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.kitchen.starts)

    @property
    def kitchen(self) -> kitchens.Kitchen:
        """The first of the layouts, to look things up that all share."""
        return kitchens.kitchen(self.layouts[0])

    @property
    def width(self) -> int:
        return self.kitchen.width

    @property
    def height(self) -> int:
        return self.kitchen.height

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        return _observation_space(self)

    def action_space(self, agent: str | None = None) -> Discrete:
        del agent
        return Discrete(6)

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        """The layout's first state, or as random as the settings say."""
        state = _overcooked_start.first_state(self, _tables(self), key)
        return self.get_obs(state), state

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        """One step; the game is deterministic and `key` unused. Events are described in `_overcooked_events`."""
        del key
        here = Here(_tables(self), state.layout)
        action = jnp.stack([jnp.asarray(actions[agent], jnp.int32) for agent in self.agents])
        done = step(self, here, state, action)
        sparse, shaped = self._rewards(here, done)
        shaping = self.reward_shaping_factor * shaped
        truncated = done.state.time >= self.horizon
        obs = self.get_obs(done.state)
        info = {
            "terminated": jnp.zeros_like(truncated),
            "truncated": truncated,
            "final_observation": obs,
            "events": events(self, here, action, done),
            "sparse": sparse,
            "shaped": shaped,
            "shaping": shaping,
        }
        rewards = {agent: sparse[i] + shaping[i] for i, agent in enumerate(self.agents)}
        dones = {**dict.fromkeys(self.agents, truncated), "__all__": truncated}
        return obs, done.state, rewards, dones, info

    def _rewards(self, here: Here, done: Step) -> tuple[Float[Array, " A"], Float[Array, " A"]]:
        """Sparse and shaped, by seat."""
        sparse, shaped = [], []
        for one in done.interactions:
            worth = here.at(here.tables.value, objects.started_recipe(one.held))
            sparse.append(jnp.where(one.delivers, worth, 0.0))
            dish = (one.dispensed == objects.DISH) & one.dish_is_useful
            shaped.append(
                jnp.where(one.pots, self.placement_in_pot_reward, 0.0)
                + jnp.where(dish, self.dish_pickup_reward, 0.0)
                + jnp.where(one.scoops, self.soup_pickup_reward, 0.0)
            )
        return jnp.stack(sparse), jnp.stack(shaped)

    def get_obs(self, state: State) -> Observations:
        views = self._views(state)
        return {agent: views[seat] for seat, agent in enumerate(self.agents)}

    def by_seat(self, obs: Observations, state: State) -> Shaped[Array, "A ..."]:
        del obs
        return self._views(state)

    def _views(self, state: State) -> Shaped[Array, "A ..."]:
        observe = _overcooked_grid.layers if self.observation == "grid" else _overcooked_features.features
        return observe(self, Here(_tables(self), state.layout), state)

    def render(self, state: State) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of one state, with the chefs, what they hold, and what the pots hold and still cook."""
        return _overcooked_render.picture(self, state)


@functools.cache
def _tables(env: Overcooked) -> Tables:
    return tables(env)


@functools.cache
def _observation_space(env: Overcooked) -> Box:
    longest = int(_tables(env).cook_time.max())
    if env.observation == "grid":
        shape = (env.width, env.height, _overcooked_grid.num_layers(env.num_agents))
        highest = max(longest, env.max_num_ingredients)
        support = _overcooked_grid.support(env.num_agents, _tables(env))
        return Box(0, highest, shape, integer=True, byte=highest <= 255, support=support)
    farthest = max(env.width, env.height)
    length = _overcooked_features.length(env.num_agents, env.num_pots)
    return Box(-farthest, max(farthest, longest, env.max_num_ingredients), (length,))


def replaced(env: Overcooked, **options: Any) -> Overcooked:
    """The game with settings that replace its own as options in a name replace a layout's: a value or time replaces all
    values or times. None: the layout's.

    Raises:
        ValueError: a setting is impossible, or orders are given without the values or times that are listed by order.
    """
    own = {name: value for name, value in env.recipe_settings.items() if value is not None and name not in options}
    given = {name: value for name, value in options.items() if name in RECIPE_SETTINGS}
    return dataclasses.replace(
        env, **options | dict.fromkeys(RECIPE_SETTINGS) | _overcooked_recipes.combined(own, given)
    )


def parse(variant: str) -> Overcooked:
    """The game of a name without its family: `large_room`, `cramped_room?horizon=200`, `random0+coordination_ring`,
    `XXPXX|O1_2O|XDXSX`, or a file, `kitchens/mine.layout`, which may hold settings too.

    Raises:
        ValueError: there is no such layout or setting, or the file or the drawing is malformed.
    """
    layout, options = options_in_names.read(variant)
    options = options_in_names.check(options, Overcooked, "overcooked", but=("layout",))
    if not layout:
        raise ValueError(f"Overcooked needs a layout, one of {', '.join(LAYOUTS)}")
    if layout.endswith((".layout", ".txt")):
        layout, of_file = kitchens.read_file(layout)
        of_file = options_in_names.check(of_file, Overcooked, "overcooked", but=("layout",))
        options = _overcooked_recipes.combined(of_file, options)
    return Overcooked(layout, **options)

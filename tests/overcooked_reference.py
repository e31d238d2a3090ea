"""Driving `overcooked_ai` itself: games, play, and its states in our form.

New dynamics are those of overcooked-ai 1.1.0, old ones of overcooked 0.2.1, which alone has them. Both keep the
settings of recipes in one place per process, so that the game made last decides for all: `Reference.play` sets them
again.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from jaxscope.envs import _overcooked_objects as objects
from jaxscope.envs._overcooked_kitchen import COUNTER, DIRECTIONS, DISHES, FLOOR, ONIONS, POT, SERVING, TOMATOES
from jaxscope.envs._overcooked_layouts import LAYOUTS
from jaxscope.envs._overcooked_paths import UNREACHABLE, distances
from jaxscope.envs.overcooked import INTERACT, Overcooked, State

# overcooked-ai 1.1.0 is older than NumPy 2, which has lost this name.
np.Inf = np.inf  # pyright: ignore[reportAttributeAccessIssue]

#: Picks the joint action of one step.
Driver = Callable[["Reference", State, np.random.Generator], list[int]]


class Record(NamedTuple):
    """Transitions of the reference, one after the other; a leading axis everywhere."""

    state: State
    action: np.ndarray  # [n, A]
    next_state: State
    sparse: np.ndarray  # [n, A]
    shaped: np.ndarray  # [n, A]
    events: dict[str, np.ndarray]  # [n, A]
    grid: np.ndarray  # [n, A, W, H, 26] of the next state; empty unless there are two players
    vector: np.ndarray  # [n, A, 96] of the next state; empty where the package cannot make it


class Reference:
    """The same game of the package."""

    def __init__(self, env: Overcooked):
        package = "overcooked" if env.old_dynamics else "overcooked_ai_py"
        self.env = env
        self.mdps = importlib.import_module(f"{package}.mdp.overcooked_mdp")
        self.actions = importlib.import_module(f"{package}.mdp.actions")
        self.mdp = self._mdp()
        self.planner = None
        if not env.old_dynamics:
            planners = importlib.import_module("overcooked_ai_py.planning.planners")
            self.planner = SimpleNamespace(motion_planner=planners.MotionPlanner(self.mdp, []))
        self.tiles = [(x, y) for x in range(env.width) for y in range(env.height) if env.kitchen.kind((x, y)) != FLOOR]

    def _mdp(self) -> Any:
        env = self.env
        settings: dict[str, Any] = {"old_dynamics": True} if env.old_dynamics else {}
        settings["rew_shaping_params"] = {
            "PLACEMENT_IN_POT_REW": env.placement_in_pot_reward,
            "DISH_PICKUP_REWARD": env.dish_pickup_reward,
            "SOUP_PICKUP_REWARD": env.soup_pickup_reward,
        }
        for name, value in env.recipe_settings.items():
            if value is not None:
                settings[name] = _orders(value) if name.endswith("orders") else value
        if env.max_num_ingredients != 3:
            settings["max_num_ingredients"] = env.max_num_ingredients
        grid = self.mdps.OvercookedGridworld
        if env.layout in LAYOUTS and not env.layout.startswith(("jaxmarl_", "v2_")):
            # A layout may hold a state, which is read before the settings of its recipes are.
            self.mdps.Recipe.configure({})
            return grid.from_layout_name(env.layout, **settings)
        drawing = LAYOUTS[env.layout].grid if env.layout in LAYOUTS else env.layout
        base = {"start_all_orders": _orders("ooo")}
        if env.layout in LAYOUTS:
            base |= {k: _orders(v) for k, v in LAYOUTS[env.layout].settings.items()}
        return grid.from_grid(drawing.replace("_", " ").split("|"), base, settings)

    def play(self, driver: Driver, episodes: int, rng: np.random.Generator) -> Iterator[tuple]:
        """Rows of a `Record`."""
        self.mdps.Recipe.configure(self.mdp.recipe_config)
        start = self.mdp.get_standard_start_state
        if self.env.random_start_pos or self.env.rnd_obj_prob_thresh:
            start = self.mdp.get_random_start_state_fn(self.env.random_start_pos, self.env.rnd_obj_prob_thresh)
        for _ in range(episodes):
            np.random.seed(rng.integers(2**31))
            theirs = start()
            state = self.snapshot(theirs)
            for _ in range(self.env.horizon):
                action = driver(self, state, rng)
                joint = [self.actions.Action.INDEX_TO_ACTION[index] for index in action]
                theirs, info = self.mdp.get_state_transition(theirs, joint)
                after = self.snapshot(theirs)
                events = {name: np.array(seen) for name, seen in info["event_infos"].items()}
                paid = (np.array(info["sparse_reward_by_agent"]), np.array(info["shaped_reward_by_agent"]))
                yield state, np.array(action, np.int32), after, *paid, events, self.grid(theirs), self.vector(theirs)
                state = after

    def grid(self, theirs: Any) -> np.ndarray:
        if self.env.num_agents != 2:
            return np.zeros(0)
        return np.stack(self.mdp.lossless_state_encoding(theirs, self.env.horizon)).astype(np.int16)

    def vector(self, theirs: Any) -> np.ndarray:
        if self.planner is None or self.env.num_agents == 1:
            return np.zeros(0)
        return np.stack(self.mdp.featurize_state(theirs, self.planner, self.env.num_pots))

    def snapshot(self, theirs: Any) -> State:
        """A state of the package in our form."""
        env = self.env
        cell = lambda at: at[0] * env.height + at[1]  # noqa: E731
        contents = np.zeros(env.width * env.height, np.int32)
        for at, thing in theirs.objects.items():
            contents[cell(at)] = _word(thing, env.kitchen.kind(at) == POT)
        held = [0 if p.held_object is None else _word(p.held_object, False) for p in theirs.players]
        values = {
            "cell": [cell(player.position) for player in theirs.players],
            "orientation": [DIRECTIONS.index(player.orientation) for player in theirs.players],
            "held": held,
            "contents": contents,
            "time": theirs.timestep,
            "layout": 0,
        }
        return State._make(np.asarray(values[name], np.int32) for name in State._fields)


def _orders(text: Any) -> list[dict]:
    names = {"o": "onion", "t": "tomato"}
    return [{"ingredients": [names[letter] for letter in order]} for order in text.split(",")] if text else []


def _word(thing: Any, in_pot: bool) -> int:
    if thing.name != "soup":
        return {"onion": objects.ONION, "tomato": objects.TOMATO, "dish": objects.DISH}[thing.name]
    amounts = (thing.ingredients.count("onion"), thing.ingredients.count("tomato"))
    if thing.is_idle:
        assert in_pot
        return objects.idle(*amounts)
    return objects.soup(*amounts, thing.cook_time_remaining)


def at_random(game: Reference, state: State, rng: np.random.Generator) -> list[int]:
    """Uniform actions."""
    del state
    return rng.integers(6, size=game.env.num_agents).tolist()


class Wanderers:
    """Each walks to a random tile, interacts there once or twice, and walks on: all sorts of things get everywhere."""

    def __init__(self, busy: float = 0.0):
        self.goals: dict[int, tuple[int, int]] = {}
        self.busy = busy  # how often a goal is not a counter

    def __call__(self, game: Reference, state: State, rng: np.random.Generator) -> list[int]:
        made, actions = game.env.kitchen, []
        if state.time == 0:
            self.goals = {}
        for seat in range(game.env.num_agents):
            if seat not in self.goals or rng.random() < 0.05:
                tiles = [t for t in game.tiles if made.kind(t) != COUNTER] if rng.random() < self.busy else game.tiles
                self.goals[seat] = tiles[rng.integers(len(tiles))]
            actions.append(walk(game, state, seat, [self.goals[seat]], rng))
            if actions[-1] == INTERACT and rng.random() < 0.8:
                del self.goals[seat]
        return actions


class Cooks:
    """Each does what a soup needs next; now and then one acts at random."""

    def __init__(self, noise: float):
        self.noise = noise

    def __call__(self, game: Reference, state: State, rng: np.random.Generator) -> list[int]:
        return [
            int(rng.integers(6))
            if rng.random() < self.noise
            else walk(game, state, seat, self.wanted(game, state, seat), rng)
            for seat in range(game.env.num_agents)
        ]

    def wanted(self, game: Reference, state: State, seat: int) -> list[tuple[int, int]]:
        env, made = game.env, game.env.kitchen
        pots = {pot: int(state.contents[pot[0] * env.height + pot[1]]) for pot in made.tiles(POT)}
        held = int(state.held[seat])
        counters = [
            tile for tile in made.tiles(COUNTER) if (state.contents[tile[0] * env.height + tile[1]] == 0) == bool(held)
        ]
        size = {pot: objects.size(objects.waiting_recipe(word)) for pot, word in pots.items()}
        started = [pot for pot, word in pots.items() if objects.started_recipe(word)]
        if held in (objects.ONION, objects.TOMATO):
            return [pot for pot in pots if pot not in started and size[pot] < env.max_num_ingredients] or counters
        if held == objects.DISH:
            return started or counters
        if held:
            return made.tiles(SERVING)
        full = [pot for pot in pots if size[pot] == env.max_num_ingredients or (size[pot] and state.time % 40 == 0)]
        others_dish = objects.DISH in np.delete(state.held, seat)
        if full and not env.old_dynamics:
            return full
        if started and not others_dish:
            return made.tiles(DISHES)
        ingredients = (made.tiles(ONIONS), made.tiles(TOMATOES))
        return ingredients[seat % 2] or ingredients[1 - seat % 2]


def walk(game: Reference, state: State, seat: int, goals: list[tuple[int, int]], rng: np.random.Generator) -> int:
    """A move towards facing the nearest goal, or INTERACT in front of it; random where there is no way."""
    env, made = game.env, game.env.kitchen
    x, y = divmod(int(state.cell[seat]), env.height)
    far = {goal: distances(made, goal) for goal in goals}
    goal = min(goals, key=lambda g: far[g][x, y, state.orientation[seat]], default=None)
    if goal is None or far[goal][x, y, state.orientation[seat]] >= UNREACHABLE:
        return int(rng.integers(6))
    if far[goal][x, y, state.orientation[seat]] == 0:
        return INTERACT
    left, blocked = [], []
    for move, (dx, dy) in enumerate(DIRECTIONS):
        ahead = (x + dx, y + dy)
        at = ahead if made.kind(ahead) == FLOOR else (x, y)
        left.append(far[goal][(*at, move)])
        blocked.append(at[0] * env.height + at[1] in np.delete(state.cell, seat))
    best = np.flatnonzero(np.array(left) == min(left))
    move = int(rng.choice(best))
    return int(rng.integers(4)) if rng.random() < (0.5 if blocked[move] else 0.1) else move


DRIVERS: tuple[Callable[[], Driver], ...] = (
    lambda: at_random,
    lambda: Wanderers(0.8),
    lambda: Cooks(0.05),
    lambda: Wanderers(0.3),
    lambda: Cooks(0.3),
)


def record(env: Overcooked, episodes: int, seed: int) -> Record:
    """Whole episodes of the reference, played by each of the drivers in turn."""
    game, rng = Reference(env), np.random.default_rng(seed)
    rows = [row for episode in range(episodes) for row in game.play(DRIVERS[episode % len(DRIVERS)](), 1, rng)]
    return Record(*(_stack(column) for column in zip(*rows, strict=True)))


def _stack(column: tuple) -> Any:
    if isinstance(column[0], State):
        return State._make(np.stack(leaf) for leaf in zip(*column, strict=True))
    if isinstance(column[0], dict):
        return {name: np.stack([row[name] for row in column]) for name in column[0]}
    return np.stack(column)

"""What a chef sees: everything, put as the ways to what there is."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked import _ways
from jaxscope.agents.partners.overcooked._soups import COMPLETE, ONION_WANTED, TOMATO_WANTED, needs
from jaxscope.agents.partners.overcooked._ways import AT_HAND, NEVER
from jaxscope.envs.overcooked import EAST, NORTH, SOUTH, WEST, Overcooked, kitchens, objects
from jaxscope.types import View

Way = Int[Array, ""]  # see `_ways`
Flag = Bool[Array, ""]


class Pot(NamedTuple):
    """A pot; nothing holds of one that the chef minds not, because it can use others only."""

    way: Way
    wants_onion: Flag
    wants_tomato: Flag
    idle: Flag  # holds something and was not started
    startable: Flag  # of these: INTERACT starts it, as it never does with the old dynamics
    complete: Flag  # of these: needs nothing more
    cooking: Flag
    ready: Flag


class Mate(NamedTuple):
    """The other chef that is nearest, in games of several; where there is none, it stands nowhere: on cell -1."""

    cell: Int[Array, ""]
    ahead: Int[Array, ""]  # the cell in front of it
    held: Int[Array, ""]
    apart: Int[Array, ""]  # steps to it, if there were no walls; 0 where there is no other chef


class Counters(NamedTuple):
    """Ways to the nearest of the chef's counters by what lies there."""

    empty: Way
    shared: Way  # empty, and to hand things over
    onion: Way
    tomato: Way
    dish: Way
    soup: Way
    num_shared: Int[Array, ""]  # how many are empty and to hand things over


class Scene(NamedTuple):
    """One chef's view of a state."""

    cell: Int[Array, ""]
    held: Int[Array, ""]
    mate: Mate
    dishes_with_others: Int[Array, ""]  # other chefs that hold a dish
    others_fill: Flag  # every other chef holds an ingredient
    contents: Int[Array, " C"]
    onions: Way  # nearest dispensers and hatch
    tomatoes: Way
    dishes: Way
    hatch: Way
    out_of_the_way: Way  # the free cell farthest from all stations
    by_a_pot: Way  # the free cell nearest to a pot, but before no station
    away: Way  # a step away from the teammate
    pots: list[Pot]
    num_pots: Int[Array, ""]
    has_pot: Flag  # the chef can use a pot
    nearest: Counters
    may_hand_over: Flag  # one shared counter stays free for a dish, where there are several
    tiles: Int[Array, " C"]  # ways to every cell
    counters: Bool[Array, " C"]
    shared: Bool[Array, " C"]  # counters to hand things over
    pot_distance: Int[Array, " C"]  # steps between the places before a counter and before a pot

    @property
    def empty(self) -> Flag:
        return self.held == 0

    @property
    def has_dish(self) -> Flag:
        return self.held == objects.DISH

    @property
    def has_soup(self) -> Flag:
        return objects.is_done(self.held)

    @property
    def has_ingredient(self) -> Flag:
        return (self.held == objects.ONION) | (self.held == objects.TOMATO)


@functools.partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["region"])
@dataclass(frozen=True)
class Look:
    """A rule asks for its scene, `scene = yield Look()`: partners that play together share it."""

    region: int = _ways.EVERYWHERE

    def answer(self, env: Overcooked, view: View) -> Scene:
        return look(env, view, self.region)


def look(env: Overcooked, view: View, region: int = _ways.EVERYWHERE) -> Scene:
    """The scene before the player of `view`, which uses only stations and counters of a region (see `_ways`)."""
    state = view.state
    table = _ways.ways(env.layouts)
    here = _Here(state.layout, env.height)
    cell, orientation, held = (_own(of, view.seat) for of in (state.cell, state.orientation, state.held))
    ahead = here.ahead(cell, orientation)
    mate = _mate(env, view, here, cell)
    own_floor = here.at(table.floor, cell)
    mate_floor = jnp.where(mate.cell < 0, table.tiles.shape[1] - 1, here.at(table.floor, mate.cell))
    places = here.row(table.places[:, region], mate_floor, own_floor)
    tiles = here.row(table.tiles, mate_floor, own_floor)
    faced = here.at(table.kind, ahead)

    tiles = jnp.where((np.arange(tiles.shape[0]) == ahead) & (faced != kitchens.FLOOR), AT_HAND, tiles)
    counters, shared = (here.whole(of[:, region]) for of in (table.counters, table.shared))
    nearest = _nearest(jnp.where(counters, tiles, NEVER), shared, state.contents)

    def way(place: int, kind: int) -> Way:
        return jnp.where((faced == kind) & _in_region(env, ahead, region), AT_HAND, places[place])

    others = [(view.seat != seat, state.held[seat]) for seat in range(env.num_agents)]
    dishes = [(is_other & (hand == objects.DISH)).astype(jnp.int32) for is_other, hand in others]
    filling = [~is_other | (hand == objects.ONION) | (hand == objects.TOMATO) for is_other, hand in others]
    pots, has_pot = _pots(env, here, state.contents, places, ahead)
    return Scene(
        cell=cell,
        held=held,
        mate=mate,
        dishes_with_others=functools.reduce(jnp.add, dishes),
        others_fill=functools.reduce(jnp.logical_and, filling),
        contents=state.contents,
        onions=way(_ways.ONIONS, kitchens.ONIONS),
        tomatoes=way(_ways.TOMATOES, kitchens.TOMATOES),
        dishes=way(_ways.DISHES, kitchens.DISHES),
        hatch=way(_ways.HATCH, kitchens.SERVING),
        out_of_the_way=places[_ways.OUT_OF_THE_WAY],
        by_a_pot=places[_ways.BY_A_POT],
        away=places[_ways.AWAY],
        pots=pots,
        num_pots=jnp.sum(here.whole(table.pot) >= 0, dtype=jnp.int32),
        has_pot=has_pot,
        nearest=nearest,
        may_hand_over=nearest.num_shared > here.whole(table.several_shared[:, region]),
        tiles=tiles,
        counters=counters,
        shared=shared,
        pot_distance=here.whole(table.pot_distance),
    )


def only_first_pot(scene: Scene) -> Scene:
    """The scene for a chef that minds only the first pot, in reading order, of those that it can reach."""
    pots, taken = [], jnp.zeros((), bool)
    for pot in scene.pots:
        mine = ~taken & (pot.way < NEVER)
        taken |= mine
        minds = mine | ~scene.has_pot
        flags = [flag & minds for flag in pot[1:]]
        pots.append(Pot(jnp.where(mine, pot.way, NEVER), *flags))
    return scene._replace(pots=pots)


def random_floor(env: Overcooked, view: View, key: PRNGKeyArray) -> Int[Array, ""]:
    """A floor cell, all equally likely."""
    table = _ways.ways(env.layouts)
    here = _Here(view.state.layout, env.height)
    number = jax.random.uniform(key) * here.whole(table.num_floor)
    return here.at(table.floor_cell, number.astype(jnp.int32))


class _Here(NamedTuple):
    """The layout in which a game is played."""

    layout: Int[Array, ""]
    height: int

    def whole(self, table: np.ndarray) -> Array:
        """A table of this layout; a constant where there is no other."""
        return jnp.asarray(table[0]) if len(table) == 1 else jnp.asarray(table)[self.layout]

    def at(self, table: Int[np.ndarray, "L n"], index: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.asarray(table[0])[index] if len(table) == 1 else jnp.asarray(table)[self.layout, index]

    def row(self, table: Int[np.ndarray, "L B F k"], b: Int[Array, ""], f: Int[Array, ""]) -> Int[Array, " k"]:
        """By one index into the flattened table, because that is one cheap look-up."""
        layouts, blocked, floor, _ = table.shape
        index = b * floor + f if layouts == 1 else (self.layout * blocked + b) * floor + f
        return jnp.asarray(table.reshape(layouts * blocked * floor, -1))[index]

    def ahead(self, cell: Int[Array, ""], orientation: Int[Array, ""]) -> Int[Array, ""]:
        """The cell in front."""
        down = (orientation == SOUTH).astype(jnp.int32) - (orientation == NORTH)
        right = (orientation == EAST).astype(jnp.int32) - (orientation == WEST)
        return cell + down + self.height * right


def _own(values: Int[Array, " A"], seat: Int[Array, ""]) -> Int[Array, ""]:
    """The value of a seat: a chain of selects is cheaper than an index that differs between games."""
    found = values[0]
    for other in range(1, len(values)):
        found = jnp.where(seat == other, values[other], found)
    return found


def _mate(env: Overcooked, view: View, here: _Here, cell: Int[Array, ""]) -> Mate:
    """The other chef with the fewest steps away if there were no walls, the lowest seat of equals."""
    state = view.state
    found = Mate(jnp.int32(-1), jnp.int32(-1), jnp.int32(0), jnp.int32(0))
    for seat in range(env.num_agents):
        other = state.cell[seat]
        apart = abs(other // env.height - cell // env.height) + abs(other % env.height - cell % env.height)
        nearer = (view.seat != seat) & ((found.cell < 0) | (apart < found.apart))
        new = Mate(other, here.ahead(other, state.orientation[seat]), state.held[seat], apart)
        found = Mate(*(jnp.where(nearer, a, b) for a, b in zip(new, found, strict=True)))
    return found


def _in_region(env: Overcooked, cell: Int[Array, ""], region: int) -> Flag:
    twice = 2 * (cell // env.height) - (env.width - 1)
    if region == _ways.EVERYWHERE:
        return jnp.ones((), bool)
    return twice <= 0 if region == _ways.WEST_HALF else twice >= 0


def _nearest(ways: Int[Array, " C"], shared: Bool[Array, " C"], contents: Int[Array, " C"]) -> Counters:
    """One reduction for all, because a pass over the cells costs more than anything else that a chef thinks of."""
    empty = contents == 0
    things = (objects.ONION, objects.TOMATO, objects.DISH)
    suits = [empty, empty & shared, *(contents == thing for thing in things), objects.is_done(contents)]
    found = [jnp.where(suiting, ways, NEVER) for suiting in suits]
    number = (empty & shared & (ways < NEVER)).astype(jnp.int32)

    def best(a: list[Array], b: list[Array]) -> list[Array]:
        return [*(jnp.minimum(x, y) for x, y in zip(a[:-1], b[:-1], strict=True)), a[-1] + b[-1]]

    start = [jnp.int32(NEVER)] * len(found) + [jnp.int32(0)]
    return Counters(*jax.lax.reduce([*found, number], start, best, (0,)))


def _pots(
    env: Overcooked, here: _Here, contents: Int[Array, " C"], places: Int[Array, " K"], ahead: Int[Array, ""]
) -> tuple[list[Pot], Flag]:
    """The pots, and whether the chef can use any. One that can use none minds all: it works for others' pots."""
    cells = here.whole(_ways.ways(env.layouts).pot)
    ways = [places[_ways.FIRST_POT + number] for number in range(len(cells))]
    has_pot = functools.reduce(jnp.logical_or, [way < NEVER for way in ways])
    pots = []
    for number, way in enumerate(ways):
        content = contents[cells[number]]
        minds = ((way < NEVER) | ~has_pot) & (cells[number] >= 0)
        waiting = objects.waiting_recipe(content)
        need = here.at(needs(env), waiting)
        startable = minds & (waiting > 0) & (not env.old_dynamics)
        pots.append(
            Pot(
                way=jnp.where((cells[number] == ahead) & (way < NEVER), AT_HAND, way),
                wants_onion=minds & _accepts(content, need, ONION_WANTED),
                wants_tomato=minds & _accepts(content, need, TOMATO_WANTED),
                idle=minds & (waiting > 0),
                startable=startable,
                complete=startable & (need == COMPLETE),
                cooking=minds & objects.is_cooking(content),
                ready=minds & objects.is_done(content),
            )
        )
    return pots, has_pot


def _accepts(content: Int[Array, ""], need: Int[Array, ""], wanted: int) -> Flag:
    return (objects.started_recipe(content) == 0) & ((need & wanted) > 0)

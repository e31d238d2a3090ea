"""What the scripted chefs look up: shortest ways around another chef, and what a pot still needs."""

from collections import deque

import numpy as np
import pytest

from jaxscope.agents.partners.overcooked import _ways
from jaxscope.agents.partners.overcooked._soups import COMPLETE, ONION_WANTED, TOMATO_WANTED, needs
from jaxscope.envs.overcooked import STAY, objects, parse

MOVES = ((0, -1), (0, 1), (1, 0), (-1, 0))
KITCHENS = ["cramped_room", "coordination_ring", "forced_coordination", "bottleneck", "XXXXXPX|O1__2_S|XXXDXXX"]


def flood(kitchen, start, blocked):
    """Steps from a floor cell to every other, none through the blocked one."""
    steps, ahead = {start: 0}, deque([start])
    while ahead:
        cell = ahead.popleft()
        for tile in kitchen.neighbours(cell):
            if kitchen.kind(tile) == 0 and tile != blocked and tile not in steps:
                steps[tile] = steps[cell] + 1
                ahead.append(tile)
    return steps


def to_tile(kitchen, steps, tile):
    """Actions until one stands beside a tile and has turned to it; None if there is no way."""
    beside = [steps[cell] + 1 for cell in steps if tile in kitchen.neighbours(cell)]
    return min(beside, default=None)


@pytest.mark.parametrize("layout", KITCHENS)
def test_ways_are_shortest_around_the_other_chef(layout):
    kitchen = parse(layout).kitchen
    table = _ways.ways((layout,))
    floor, cells = kitchen.tiles(0), kitchen.cells()
    assert [cells[cell] for cell in table.floor_cell[0]] == floor
    for b, blocked in enumerate([*floor, None]):
        for f, start in enumerate(floor):
            if start == blocked:
                continue
            steps, alone = flood(kitchen, start, blocked), flood(kitchen, start, None)
            for cell, way in zip(cells, table.tiles[0, b, f], strict=True):
                cost, action = way >> _ways.COST_SHIFT, way & 7
                if kitchen.kind(cell) == 0:
                    expected, freely = steps.get(cell), alone.get(cell)
                else:
                    expected, freely = to_tile(kitchen, steps, cell), to_tile(kitchen, alone, cell)
                if freely is None:
                    assert way == _ways.NEVER
                elif expected is None:
                    assert cost == freely + _ways.THROUGH_THE_OTHER
                    assert not _ways.is_free(way)
                else:
                    assert cost == expected
                    assert _ways.is_free(way)
                    follows(kitchen, table, b, start, cell, way)
                assert (action == STAY) == (cell == start or way == _ways.NEVER)


def follows(kitchen, table, b, start, cell, way):
    """The first action leads one step nearer, or turns to the tile."""
    dx, dy = MOVES[way & 7] if (way & 7) < STAY else (0, 0)
    ahead = (start[0] + dx, start[1] + dy)
    if kitchen.kind(ahead) == 0 and ahead != start:
        nearer = table.tiles[0, b, kitchen.tiles(0).index(ahead), kitchen.cells().index(cell)]
        assert nearer >> _ways.COST_SHIFT == (way >> _ways.COST_SHIFT) - 1
    else:
        assert ahead == cell


def place(layout, column, chef, other=None, region=_ways.EVERYWHERE):
    """The number of steps and the goal of a way to a place."""
    kitchen, table = parse(layout).kitchen, _ways.ways((layout,))
    floor = kitchen.tiles(0)
    b = floor.index(other) if other else len(floor)
    way = table.places[0, region, b, floor.index(chef), column]
    rank = (way >> _ways.ACTION_BITS) & ((1 << (_ways.COST_SHIFT - _ways.ACTION_BITS)) - 1)
    return way >> _ways.COST_SHIFT, (rank % kitchen.width, rank // kitchen.width)


def test_places_in_large_room():
    assert place("large_room", _ways.ONIONS, (1, 1)) == (1, (0, 1))
    assert place("large_room", _ways.ONIONS, (3, 1)) == (3, (0, 1))  # the first of equals
    assert place("large_room", _ways.ONIONS, (3, 1), other=(2, 1)) == (3, (6, 1))
    assert place("large_room", _ways.DISHES, (3, 1)) == (7, (1, 6))
    assert place("large_room", _ways.HATCH, (3, 1)) == (7, (5, 6))
    assert place("large_room", _ways.FIRST_POT, (3, 1)) == (1, (3, 0))
    assert place("large_room", _ways.FIRST_POT, (3, 2), other=(3, 1)) == (2 + _ways.THROUGH_THE_OTHER, (3, 0))
    assert place("large_room", _ways.BY_A_POT, (2, 1)) == (0, (2, 1))
    assert place("large_room", _ways.BY_A_POT, (1, 1), other=(2, 1))[1] == (4, 1)
    assert place("large_room", _ways.OUT_OF_THE_WAY, (3, 1)) == (3, (2, 3))
    assert place("large_room", _ways.OUT_OF_THE_WAY, (3, 1), other=(2, 3))[1] != (2, 3)
    east = _ways.EAST_HALF
    assert place("large_room", _ways.ONIONS, (1, 1), region=east) == (5, (6, 1))
    assert place("large_room", _ways.FIRST_POT, (3, 1), region=east) == (1, (3, 0))
    assert place("large_room", _ways.DISHES, (3, 1), region=east)[0] == _ways.NEVER >> _ways.COST_SHIFT
    assert _ways.ways(("large_room",)).places[0, 0, 12, 7, _ways.AWAY] & 7 < STAY


def test_chefs_step_away_from_each_other():
    table = _ways.ways(("large_room",))
    floor = parse("large_room").kitchen.tiles(0)
    away = table.places[0, 0, floor.index((3, 3)), floor.index((3, 4)), _ways.AWAY]
    assert away & 7 == 1  # south
    dead_end = _ways.ways(("XXXXXPX|O1__2_S|XXXDXXX",))
    assert dead_end.places[0, 0, 1, 0, _ways.AWAY] == _ways.NEVER


def test_counters_between_the_parts_of_a_divided_kitchen_are_for_handing_over():
    kitchen, table = parse("forced_coordination").kitchen, _ways.ways(("forced_coordination",))
    shared = {kitchen.cells()[cell] for cell in np.flatnonzero(table.shared[0, _ways.EVERYWHERE])}
    assert shared == {(2, 1), (2, 2), (2, 3)}
    ring = _ways.ways(("coordination_ring",))
    np.testing.assert_array_equal(ring.shared[0, 0], ring.counters[0, 0])


def test_layouts_of_one_size_are_stacked():
    both = _ways.ways(("coordination_ring", "forced_coordination"))
    for number, layout in enumerate(("coordination_ring", "forced_coordination")):
        alone = _ways.ways((layout,))
        floor = alone.tiles.shape[2]
        np.testing.assert_array_equal(both.tiles[number, :floor, :floor], alone.tiles[0, :floor])
        np.testing.assert_array_equal(both.tiles[number, -1, :floor], alone.tiles[0, -1])
        np.testing.assert_array_equal(both.kind[number], alone.kind[0])


def need(variant, onions, tomatoes):
    return needs(parse(variant))[0][objects.recipe(onions, tomatoes)]


def test_pots_need_what_makes_the_most_valuable_soup():
    for onions in range(3):
        assert need("large_room", onions, 0) == ONION_WANTED
    assert need("large_room", 3, 0) == COMPLETE
    # Orders ott, oot and, worth twice as much, ot.
    assert need("counter_circuit", 0, 0) == ONION_WANTED | TOMATO_WANTED
    assert need("counter_circuit", 1, 0) == TOMATO_WANTED
    assert need("counter_circuit", 0, 1) == ONION_WANTED
    assert need("counter_circuit", 1, 1) == COMPLETE
    # What is worth nothing takes whatever there is.
    assert need("counter_circuit", 3, 0) == COMPLETE
    assert need("cramped_room_tomato?start_all_orders=ooo&start_bonus_orders=", 0, 1) == ONION_WANTED | TOMATO_WANTED
    assert need("large_room?start_all_orders=o,ooo&recipe_values=30,20", 1, 0) == COMPLETE
    assert need("large_room?max_num_ingredients=4", 3, 0) == COMPLETE

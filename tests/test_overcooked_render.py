"""Pictures of kitchens: as stored, and different wherever the state differs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stored_pictures import assert_looks_as_it_did

from jaxscope.drawing import SEAT_COLOURS
from jaxscope.envs import _overcooked_objects as objects
from jaxscope.envs._overcooked_kitchen import COUNTER, POT
from jaxscope.envs.overcooked import EAST, NORTH, SOUTH, WEST, parse

ENV = parse("counter_circuit")


HELD = (objects.DISH, objects.soup(1, 2))
POTS = (objects.soup(2, 1, 14), objects.idle(1, 1))


def scene(held=HELD, pots=POTS, facing=(EAST, NORTH)):
    """A busy kitchen: something of every kind on the counters in the middle."""
    kitchen = ENV.kitchen
    number = {tile: index for index, tile in enumerate(kitchen.cells())}
    contents = np.zeros(len(number), int)
    for tile, word in zip(kitchen.tiles(POT), pots, strict=True):
        contents[number[tile]] = word
    for x, word in zip(range(2, 6), (objects.ONION, objects.TOMATO, objects.DISH, objects.soup(3, 0)), strict=True):
        assert kitchen.kind((x, 2)) == COUNTER
        contents[number[x, 2]] = word
    _, state = ENV.reset(jax.random.key(0))
    return state._replace(contents=jnp.array(contents), held=jnp.array(held), orientation=jnp.array(facing))


def test_a_kitchen_looks_as_it_did():
    picture = ENV.render(scene())
    assert picture.shape == (ENV.height * 64, ENV.width * 64, 3)
    assert_looks_as_it_did(picture, "overcooked.png")


@pytest.mark.parametrize(
    "change",
    [
        *({"held": (held, objects.soup(1, 2))} for held in (0, objects.ONION, objects.TOMATO, objects.soup(3, 0))),
        *({"facing": (facing, NORTH)} for facing in (NORTH, SOUTH, WEST)),
        {"pots": (objects.soup(2, 1, 13), objects.idle(1, 1))},
        {"pots": (objects.soup(2, 1), objects.idle(1, 1))},
        {"pots": (objects.soup(2, 1, 14), objects.idle(2, 1))},
        {"pots": (objects.soup(2, 1, 14), 0)},
    ],
)
def test_whatever_changes_is_seen(change):
    """Ten pixels at least differ clearly: nobody could take one for the other."""
    before, after = ENV.render(scene()), ENV.render(scene(**change))
    clearly = np.abs(before.astype(int) - after.astype(int)).max(axis=-1) > 60
    assert clearly.sum() > 10


@pytest.mark.parametrize("layout", ["large_room", "forced_coordination", "multiplayer_schelling"])
def test_every_chef_wears_the_colour_of_its_seat(layout):
    env = parse(layout)
    picture = env.render(env.reset(jax.random.key(0))[1])
    for seat in range(len(SEAT_COLOURS)):
        near = np.abs(picture.astype(int) - np.array(SEAT_COLOURS[seat])[None, None, :]).max(axis=-1) < 8
        assert (near.sum() > 200) == (seat < env.num_agents)

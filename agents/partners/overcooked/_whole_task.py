"""The whole task, one errand after the other, for chefs that shirk nothing."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Array, Int

from jaxscope.agents.partners.overcooked._errands import (
    bring_ingredient,
    count,
    fetch_dish,
    fetch_ingredient,
    first,
    hand_over,
    lying_soup,
    put_down,
    serve,
    started,
    to_pot,
    without_touching,
)
from jaxscope.agents.partners.overcooked._scene import Flag, Pot, Scene, Way
from jaxscope.agents.partners.overcooked._ways import NEVER

#: Steps for which a chef keeps what it has no use for.
KEEP = 20


def is_complete(pot: Pot) -> Flag:
    return pot.complete


def whole_task(scene: Scene, carried: Int[Array, ""], to_start: Callable[[Pot], Flag] = is_complete) -> Way:
    """The next errand: a dish where a soup has none yet, else starting a pot, else filling one.

    Args:
        scene: what the chef sees.
        carried: steps for which it has held what it holds.
        to_start: which pots to start.
    """
    dishes_lacking = count(started(pot) for pot in scene.pots) > scene.dishes_with_others
    startable = to_pot(scene, to_start)
    # Another chef with free hands would do it. One that never does must not keep this one waiting for good.
    left_to_it = scene.others_fill | (carried > KEEP)
    better_to_do = (dishes_lacking | (startable < NEVER)) & left_to_it
    return first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish, without_touching(to_pot(scene, lambda pot: pot.cooking))),
        (scene.has_dish & ~scene.has_pot, hand_over(scene)),
        (scene.has_dish & (carried > KEEP), put_down(scene)),
        (scene.has_ingredient, bring_ingredient(scene)),
        (scene.has_ingredient & better_to_do, put_down(scene)),
        (scene.empty & (scene.hatch < NEVER), lying_soup(scene)),
        (scene.empty & dishes_lacking, fetch_dish(scene, also_lying=True)),
        (scene.empty, startable),
        (scene.empty, fetch_ingredient(scene, also_lying=True)),
        (True, scene.by_a_pot),
    )

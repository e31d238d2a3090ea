"""The kitchens that have names, as data."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Start(NamedTuple):
    """A first state that differs from players at their digits, facing north, with empty hands and pots."""

    orientations: str  # a letter of NSEW per player
    held: tuple[str, ...]  # per player: nothing, or an ingredient's letter
    pots: tuple[tuple[tuple[int, int], str], ...]  # (x, y) and the recipe waiting there


class Layout(NamedTuple):
    """A grid, rows from the top separated by `|`, and the settings that differ from 3-onion soups worth 20."""

    grid: str
    settings: dict[str, Any]


def _layout(grid: str, **settings: Any) -> Layout:
    return Layout(grid, settings)


BY_INGREDIENT = {"onion_value": 21, "tomato_value": 13, "onion_time": 15, "tomato_time": 7}
EVERY_FULL_SOUP = "ooo,oot,ott,ttt"

#: `overcooked_ai`'s, under its names.
OVERCOOKED_AI = {
    "asymmetric_advantages": _layout("XXXXXXXXX|O XSXOX S|X   P 1 X|X2  P   X|XXXDXDXXX"),
    "asymmetric_advantages_tomato": _layout(
        "XTXXXXXOX|D XOXTX S|X   P 1 X|X2  X   X|XXXSXDXXX",
        start_all_orders="ooo,oot,ttt,t",
        start_bonus_orders="ttt,oot",
        **BY_INGREDIENT,
    ),
    "bonus_order_test": _layout(
        "XXPXX|O  2T|X1  X|XDXSX",
        start_all_orders="ooo,ttt,ot",
        start_bonus_orders="ot,ttt",
        recipe_values=(10, 20, 15),
        recipe_times=(20, 15, 10),
    ),
    "bottleneck": _layout("XXOXDXX|X 1X2 X|X  X  X|X     X|XSXXPPX"),
    "centre_objects": _layout("XXXXXXX|X  1  X|X P S X|X     X|X D O X|X  2  X|XXXXXXX"),
    "centre_pots": _layout("XXXOSSX|X  1  X|X P P X|X  2  X|XDDOXXX"),
    "coordination_ring": _layout("XXXPX|X 1 P|D2X X|O   X|XOSXX"),
    "corridor": _layout(
        "XXXXXOXXDXXXXX|X  1  XX  2  X|X     XX     X|X  XXXXXXXX  X|X            X|"
        "X  XXXXXXXX  X|X     XX     X|X     XX     X|XXXXXSXXPPXXXX"
    ),
    "counter_circuit": _layout(
        "XXXPDPXXX|X   2   X|X XXXXX X|X   1   X|XXXOSTXXX",
        start_all_orders="ott,oot,ot",
        start_bonus_orders="ot",
        **BY_INGREDIENT,
    ),
    "counter_circuit_o_1order": _layout("XXXPPXXX|X  2   X|D XXXX S|X  1   X|XXXOOXXX"),
    "cramped_corridor": _layout(
        "XTPXXXXSX|D      2X|XXXX XXXX|D      1X|XOPXXXXSX",
        start_all_orders="t,ooo,ttt,ot,tt",
        start_bonus_orders="ot,t,tt",
        **BY_INGREDIENT,
    ),
    "cramped_room": _layout("XXPXX|O  2O|X1  X|XDXSX"),
    "cramped_room_o_3orders": _layout(
        "XXPXX|O  2X|X1  X|XDXSX", start_all_orders="ooo,oo,o", recipe_values=(20, 9, 4), recipe_times=(20, 20, 20)
    ),
    "cramped_room_single": _layout("XXPXX|O   O|X1  X|XDXSX"),
    "cramped_room_tomato": _layout(
        "XXPXX|O  2T|X1  X|XDXSX",
        start_all_orders="ooo,ttt,ot",
        start_bonus_orders="ot",
        tomato_value=10,
        onion_value=15,
        tomato_time=10,
        onion_time=10,
    ),
    "five_by_five": _layout("XDPXX|X   S|O 2 X|X1  D|XOXPX"),
    "forced_coordination": _layout("XXXPX|O X1P|O2X X|D X X|XXXSX"),
    "forced_coordination_tomato": _layout(
        "XXXPX|T X1P|O2X X|S X X|XXXDX",
        start_all_orders="ooo,ott,oot,ttt",
        recipe_values=(10, 10, 10, 15),
        recipe_times=(10, 10, 10, 10),
    ),
    "inverse_marshmallow_experiment": _layout(
        "XOXXXXXXXXXOX|X     X     X|XXXX  D  XXXX|XXS 2 P 1 SXX|XXXXXTXTXXXXX",
        start_all_orders="o,t,oot,ooo,ttt",
        start_bonus_orders="ooo",
        **BY_INGREDIENT,
    ),
    "large_room": _layout("XXXPXXX|O    2O|X     X|X     X|X     X|X1    X|XDXXXSX"),
    "long_cook_time": _layout(
        "XOXXXXXXXXXXX|X XXXXXXXXXXX|X  1        X|X           P|X  2        X|X DXXXXXXXXXX|XSXXXXXXXXXXX",
        start_all_orders="ooo,oo,o",
        recipe_values=(10, 10, 10),
        recipe_times=(100, 100, 100),
    ),
    "m_shaped_s": _layout("XPXXX|O X2O|X1  X|XDXSX"),
    "marshmallow_experiment": _layout(
        "XXXXXXXXXXXXX|O   DTXTD   O|XX    P    XX|S   2 P 1   S|XXXXXTXTXXXXX",
        start_all_orders="ooo,ttt",
        start_bonus_orders="ooo",
        **BY_INGREDIENT,
    ),
    "marshmallow_experiment_coordination": _layout(
        "XXXXXXXXXXXOX|X    XTTX   X|XXX  P    XXX|S  2 P 1    X|XXXXDXTTXXXXX",
        start_all_orders="ooo,ttt",
        start_bonus_orders="ooo",
        **BY_INGREDIENT,
    ),
    "mdp_test": _layout(
        "XXPXX|O  2O|T1  T|XDPSX",
        start_all_orders="o,ooo,oot",
        start_bonus_orders="oot",
        tomato_value=5,
        onion_value=10,
        tomato_time=2,
        onion_time=2,
    ),
    "multiplayer_schelling": _layout("XXSPDXX|X  1  X|X  X  X|O3   4O|X  X  X|X  2  X|XXDPSXX"),
    "old_dynamics_cook_test": _layout("XXPXX|O 1 X|X   X|XDXSX", start=Start("N", ("",), (((2, 0), "o"),))),
    "old_dynamics_put_test": _layout("XXPXX|O 1 X|X   X|XDXSX", start=Start("N", ("o",), (((2, 0), "oo"),))),
    "pipeline": _layout(
        "XXXPDPXXX|X       X|X XXXXX X|X X     X|X XXXXX X|X  1 2  X|XXXOSOXXX",
        start_all_orders="ooo,oo,o",
        start_bonus_orders="oo",
        **BY_INGREDIENT,
    ),
    "random0": _layout("XXXPX|O X1P|O2X X|D X X|XXXSX"),
    "random3": _layout("XXXPPXXX|X  2   X|D XXXX S|X  1   X|XXXOOXXX"),
    "scenario1_s": _layout("XXOXDXX|X 1X2 X|X  X  X|X     X|XSXXPPX"),
    "scenario2": _layout("XXXXXOXXXX|S        O|D    1 2 X|XXXXXXPXXX"),
    "scenario2_s": _layout("XXOXXXX|S     O|D 1 2 X|XXXPXXX"),
    "scenario3": _layout("XXXXXOXXXX|S     XXPX|X    1   X|D XXXXXX X|X     2  O|XXXXXXXXXX"),
    "scenario4": _layout("XXXXXOXXXX|S      XPX|D    1   X|XXXXXXXX X|XXXXXX2  O|XXXXXXXXXX"),
    "schelling": _layout("XXSPDXX|X  1  X|X  X  X|O     O|X  X  X|X  2  X|XXDPSXX"),
    "schelling_s": _layout("XSPDX|X 1 X|O   O|X 2 X|XDPSX"),
    "simple_o": _layout("XXPXX|X  2X|X1  O|XXDSX", recipe_values=(20,), recipe_times=(5,)),
    "simple_o_t": _layout(
        "XXPXX|T  2T|X1  O|XXDSX", start_all_orders="ooo,ttt", recipe_values=(20, 15), recipe_times=(5, 5)
    ),
    "simple_tomato": _layout("XXPXX|T  2T|X1  O|XXDSX", start_all_orders="ttt"),
    "small_corridor": _layout("XXXXXOXDXXXXX|X  1  X  2  X|X  XXXXXXX  X|X           X|XSXXXXXXXXPPX"),
    "soup_coordination": _layout(
        "XXXDTXOXXXX|X    X    X|S 2  P  1 S|X    X    X|XXXXOXTDXXX",
        start_all_orders="oot,ttt,ot,t,o",
        start_bonus_orders="t,oot,ttt,o",
        **BY_INGREDIENT,
    ),
    "tutorial_0": _layout("XXPXXXX|O   2 S|XXPDXXX|O   1 S|XXXXXXX", **BY_INGREDIENT),
    "tutorial_1": _layout(
        "XXPXXXX|O   2 S|XTPDXXX|O   1 S|XXXXXXX",
        start_all_orders="ott,ot",
        start=Start("WN", ("", ""), (((2, 2), "oo"),)),
        **BY_INGREDIENT,
    ),
    "tutorial_2": _layout("XXPXXXX|O   2 S|XTPDXXX|O   1 S|XXXXXXX", start_all_orders="", **BY_INGREDIENT),
    "tutorial_3": _layout(
        "XXPXXXX|O   2 S|XTPDXXX|O   1 S|XXXXXXX",
        start_all_orders="",
        start_bonus_orders="ott",
        order_bonus=math.inf,
        **BY_INGREDIENT,
    ),
    "unident": _layout("XXXXXXXXXXX|O XXSXOXX S|X    P  1 X|X2   P    X|XXXXDXDXXXX"),
    "you_shall_not_pass": _layout(
        "XXXXXSSSXXXXX|XXTSSS SSSOXX|P 1       2 P|XXDSSSSSSSDXX",
        start_all_orders="o,t,oot,ott,ttt,oo",
        start_bonus_orders="oot,ott",
        **BY_INGREDIENT,
    ),
}

#: JaxMARL's five, with its starts, which are not always those of `overcooked_ai`.
JAXMARL = {
    "jaxmarl_cramped_room": _layout("XXPXX|O1 2O|X   X|XDXSX"),
    "jaxmarl_asymm_advantages": _layout("XXXXXXXXX|O XSXOX S|X   P   X|X 1 P2  X|XXXDXDXXX"),
    "jaxmarl_coord_ring": _layout("XXXPX|X 1 P|D2X X|O   X|XOSXX"),
    "jaxmarl_forced_coord": _layout("XXXPX|O X2P|O1X X|D X X|XXXSX"),
    "jaxmarl_counter_circuit": _layout("XXXPPXXX|X 1    X|D XXXX S|X     2X|XXXOOXXX"),
}

#: OvercookedV2's (Gessler et al., 2025) with at most two ingredients. Its recipe of the day does not exist here, so its
#: indicator is a counter, and every soup of three ingredients is in demand.
OVERCOOKED_V2 = {
    "v2_cramped_room": _layout("XXPXX|O1 2T|X   X|XDXSX", start_all_orders=EVERY_FULL_SOUP),
    "v2_two_rooms": _layout("XXXXXDTOX|X   X   X|P 1 X 2 X|X   X   S|XXXXXXXXX", start_all_orders=EVERY_FULL_SOUP),
    "v2_two_rooms_both": _layout("XOTDXDTOX|X   X   X|P 1 X 2 X|X   X   S|XXXXXXXXX", start_all_orders=EVERY_FULL_SOUP),
    "v2_fun_symmetries_plates": _layout("XXXXXXX|D  X  O|X 1P2 S|D  X  T|XXXXXXX", start_all_orders=EVERY_FULL_SOUP),
}

LAYOUTS = OVERCOOKED_AI | JAXMARL | OVERCOOKED_V2

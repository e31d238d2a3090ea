"""The kitchens: those with names, drawn ones, files, and what is said of malformed ones."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from overcooked_reference import Reference

import jaxscope
from jaxscope.envs import _overcooked_objects as objects
from jaxscope.envs._overcooked_kitchen import FLOOR, kitchen
from jaxscope.envs._overcooked_layouts import JAXMARL, LAYOUTS, OVERCOOKED_AI
from jaxscope.envs._overcooked_recipes import possible, recipes
from jaxscope.envs._overcooked_tables import tables
from jaxscope.envs.overcooked import EXAMPLES, Overcooked, parse

DRAWN = "XXPXX|O1_2O|X___X|XDXSX"


def test_every_layout_of_the_reference_is_here():
    import overcooked

    folder = Path(overcooked.__file__).parent / "data" / "layouts"
    assert {path.stem for path in folder.glob("*.layout")} == set(OVERCOOKED_AI)
    assert len(OVERCOOKED_AI) == 49


def test_a_layout_file_of_the_reference_is_the_layout_of_its_name():
    import overcooked

    files = sorted((Path(overcooked.__file__).parent / "data" / "layouts").glob("*.layout"))
    unsupported = ("start_state", "float(")
    files = [file for file in files if not any(words in file.read_text() for words in unsupported)]
    assert len(files) > 40
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tiles that nobody can reach, which some have
            read, named = parse(str(file)), parse(file.stem)
        for field, ours, theirs in zip(tables(named)._fields, tables(read), tables(named), strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{file.stem}, {field}")


@pytest.mark.parametrize("name", OVERCOOKED_AI)
def test_a_layout_is_the_references(name):
    """Tiles, first state, and the value and cooking time of every recipe."""
    env = parse(name)
    # Four layouts are in one of the packages only; all that is compared here holds for both dynamics.
    old = name in ("old_dynamics_cook_test", "old_dynamics_put_test", "random0", "random3")
    game = Reference(dataclasses.replace(env, old_dynamics=True) if old else env)
    terrain = tuple("".join(row) for row in game.mdp.terrain_mtx)
    assert kitchen(name).rows == terrain
    state = jax.eval_shape(env.reset, jax.random.key(0))[1]
    start = game.snapshot(game.mdp.get_standard_start_state())
    made = tables(env)
    assert made.start_cell[0].shape == state.cell.shape
    np.testing.assert_array_equal(made.start_cell[0], start.cell)
    np.testing.assert_array_equal(made.start_orientation[0], start.orientation)
    np.testing.assert_array_equal(made.start_held[0], start.held)
    np.testing.assert_array_equal(made.start_contents[0], start.contents)
    theirs = game.mdp.get_standard_start_state()
    for onions, tomatoes in possible(3):
        recipe = game.mdps.Recipe(["onion"] * onions + ["tomato"] * tomatoes)
        index = objects.recipe(onions, tomatoes)
        assert made.cook_time[0, index] == recipe.time
        if not theirs.all_orders or not game.mdp.start_state:
            assert made.value[0, index] == game.mdp.get_recipe_value(theirs, recipe)


def test_jaxmarls_layouts_are_jaxmarls():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jaxmarl.environments.overcooked import overcooked_layouts
    assert {name.removeprefix("jaxmarl_") for name in JAXMARL} == set(overcooked_layouts)
    for name in JAXMARL:
        theirs: dict[str, Any] = dict(overcooked_layouts[name.removeprefix("jaxmarl_")])
        ours = kitchen(name)
        at = lambda key: [(int(i) % ours.width, int(i) // ours.width) for i in np.sort(theirs[key])]  # noqa: B023, E731
        assert (ours.width, ours.height) == (theirs["width"], theirs["height"])
        for key, tile in (("onion_pile_idx", "O"), ("plate_pile_idx", "D"), ("goal_idx", "S"), ("pot_idx", "P")):
            assert ours.tiles(" XOTPDS".index(tile)) == at(key)
        walls = [cell for kind in range(1, 7) for cell in ours.tiles(kind)]
        assert set(walls) == set(at("wall_idx"))
        assert [y * ours.width + x for x, y in ours.starts] == theirs["agent_idx"].tolist()


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_can_be_made_and_has_its_name(name):
    env = jaxscope.make(f"overcooked/{name}")
    assert env.name == f"overcooked/{name}"
    assert env.num_agents == len(kitchen(name).starts)


@pytest.mark.parametrize(
    "variant",
    [
        *(example.removeprefix("overcooked/") for example in EXAMPLES),
        DRAWN,
        "coordination_ring+forced_coordination?random_start_pos=true",
        "cramped_room?start_all_orders=ooo,oot&start_bonus_orders=oot&recipe_values=(20.0, 30.0)&cook_time=5",
        "cramped_room?start_all_orders=&horizon=100&reward_shaping_factor=0.5&old_dynamics=false",
    ],
)
def test_a_name_makes_the_environment_that_has_it(variant):
    env = parse(variant)
    assert parse(env.name.removeprefix("overcooked/")) == env
    assert jaxscope.make(env.name) == env


def test_a_drawing_may_use_spaces_dots_and_underscores():
    assert parse(DRAWN) == parse(DRAWN.replace("_", " ")) == parse(DRAWN.replace("_", "."))
    assert kitchen(DRAWN).tiles(FLOOR) == [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2)]


def test_layouts_from_files(tmp_path):
    bare = tmp_path / "bare.txt"
    bare.write_text("\nXXPXX\nO1 2O\nX   X\nXDXSX\n\n")
    assert parse(str(bare)) == parse(DRAWN)
    assert jaxscope.make(f"overcooked/{bare}?horizon=7") == parse(f"{DRAWN}?horizon=7")
    full = tmp_path / "full.layout"
    full.write_text(
        """{"grid": \"\"\"XXPXX
                O1 2O
                X   X
                XDXSX\"\"\",
    "start_bonus_orders": [{"ingredients": ["onion", "tomato"]}],
    "start_all_orders": [{"ingredients": ["onion", "tomato"]}, {"ingredients": ["onion"]}],
    "recipe_values": [10, 20], "rew_shaping_params": None}"""
    )
    assert parse(str(full)) == parse(f"{DRAWN}?start_all_orders=ot,o&start_bonus_orders=ot&recipe_values=10,20")
    assert parse(f"{full}?recipe_values=1,2").recipe_values == (1.0, 2.0)
    for path in (bare, full):  # also with a byte-order mark
        before = parse(str(path))
        path.write_text(path.read_text(), encoding="utf-8-sig")
        assert parse(str(path)) == before
    assert parse(layout_file(tmp_path, num_items_for_soup=3)) == parse(layout_file(tmp_path))


def layout_file(tmp_path, **settings) -> str:
    """A file in the `.layout` form, with the drawing `DRAWN`; a setting that is None stands in it as None."""
    path = tmp_path / "some.layout"
    path.write_text(repr({"grid": DRAWN.replace("|", "\n"), **settings}))
    return str(path)


ORDERS = [{"ingredients": ["onion", "onion"]}, {"ingredients": ["onion"]}]


def test_options_of_make_replace_those_of_a_file_too(tmp_path):
    file = layout_file(tmp_path, start_all_orders=ORDERS, recipe_values=(20, 9), recipe_times=(5, 4), horizon=30)
    env = jaxscope.make(f"overcooked/{file}", cook_time=7, reward_shaping_factor=0)
    assert env == parse(f"{file}?cook_time=7&reward_shaping_factor=0")
    with pytest.raises(ValueError, match="recipe_values of the layout are for its own orders"):
        jaxscope.make(f"overcooked/{file}", start_all_orders="ooo,oo")
    named = "overcooked/cramped_room?cook_time=5&horizon=30"
    assert jaxscope.make(named, cook_time=None) == parse("cramped_room?horizon=30")


def test_a_setting_of_zero_in_a_file_counts(tmp_path):
    """Only None is not given."""
    zeros = ("reward_shaping_factor", "placement_in_pot_reward", "order_bonus", "delivery_reward")
    env = parse(layout_file(tmp_path, start_all_orders=ORDERS, horizon=None, **dict.fromkeys(zeros, 0)))
    assert [getattr(env, name) for name in zeros] == [0] * len(zeros)
    assert env.horizon == Overcooked(DRAWN).horizon
    assert not tables(env).value.any()
    for name, message in (("horizon", "horizon = 0 must be at least 1"), ("cook_time", "cook_time = 0 must lie")):
        with pytest.raises(ValueError, match=message):
            parse(layout_file(tmp_path, **{name: 0}))


@pytest.mark.parametrize(
    "options",
    [
        "cook_time=5",
        "delivery_reward=3&cook_time=none",
        "onion_value=3&tomato_value=1",
        "onion_time=3",
        "recipe_times=1,2,3",
        "start_all_orders=ooo,ttt",
        "start_all_orders=ooo&recipe_values=1,&start_bonus_orders=ooo",
        "start_all_orders=ooo&recipe_values=1,&cook_time=5&start_bonus_orders=ooo",
        "start_all_orders=ooo&delivery_reward=1&cook_time=5",
        "order_bonus=7&horizon=30",
        "start_all_orders=none",
    ],
)
def test_a_file_combines_with_options_as_a_named_layout_does(tmp_path, options):
    """`bonus_order_test` and a file that holds the same: equal tables, or equal messages."""
    named = LAYOUTS["bonus_order_test"]
    listed = {
        name: [{"ingredients": [{"o": "onion", "t": "tomato"}[letter] for letter in order]} for order in orders]
        for name, orders in ((n, named.settings[n].split(",")) for n in ("start_all_orders", "start_bonus_orders"))
    }
    file = layout_file(tmp_path, **named.settings | listed | {"grid": named.grid.replace("|", "\n")})

    def outcome(layout):
        try:
            return tables(parse(f"{layout}?{options}"))
        except ValueError as error:
            return str(error)

    ours, theirs = outcome(file), outcome("bonus_order_test")
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (" \n", "bad.layout is empty; it must hold rows of tiles"),
        ("XXPXX\nO1 2O\nX   X", "layout 'XXPXX|O1_2O|X___X'"),
        ("{'grid': 3}", "a dictionary of plain values with a 'grid'"),
        ("{'rows': 'XX'}", "a dictionary of plain values with a 'grid'"),
        ("{'grid': open('x')}", "a dictionary of plain values with a 'grid'"),
        ("{'grid': 'XXPXX\\nO1 2O\\nXDXSX', 'cook_tim': 3}", "no option 'cook_tim'. Did you mean 'cook_time'"),
        ("{'grid': 'XXPXX\\nO1 2O\\nXDXSX', 'start_state': {'a': 1}}", "start_state is not supported"),
    ],
)
def test_messages_for_malformed_files(tmp_path, content, message):
    path = tmp_path / "bad.layout"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(str(path))


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        ("|", "it is empty"),
        ("XXPXX|O   O|XDXSX", "no player starts"),
        ("XXXXX|O1 2O|XDXSX", "no pot (P)"),
        ("XXPXX|O1 2O|XXXSX", "no dish dispenser (D)"),
        ("XXPXX|O1 2O|XDXXX", "no serving hatch (S)"),
        ("XXPXX|X1 2X|XDXSX", "no onion or tomato dispenser"),
        ("XXPXX|O1 2O|XDXS", "rows must be equally long, but are 5, 5, 4 tiles"),
        ("XXP X|O1 2O|XDXSX", "the border must be closed, but column 3 of row 0"),
        ("XXPXX|O1 2 |XDXSX", "the border must be closed, but column 4 of row 1"),
        ("XXPXX|O1 2O|1DXSX", "the border must be closed, but column 0 of row 2"),
        ("XXPXX|O1Q2O|XDXSX", "unknown tile 'Q'"),
        ("XXPXX|O1 0O|XDXSX", "unknown tile '0'"),
        ("XXPXX|O1 1O|XDXSX", "starts must be numbered 1 to 2, each once, not 1, 1"),
        ("XXPXX|O1 3O|XDXSX", "starts must be numbered 1 to 2, each once, not 1, 3"),
    ],
)
def test_messages_for_malformed_drawings(drawing, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(drawing)


def test_what_nobody_can_reach_is_worth_a_warning():
    with pytest.warns(UserWarning, match="no player can reach P in column 4 of row 0"):
        parse("XXPXP|O1_2X|XDXSX")
    with pytest.warns(UserWarning, match="no player can reach O in column 4 of row 1, D in column 5 of row 2"):
        parse("XXPXXX|O12XOX|XDSXXD")


def test_orders_that_nothing_is_there_for_are_worth_a_warning():
    with pytest.warns(UserWarning, match=r"no soup in demand \(ooo\) can be made from its dispensers"):
        parse("XXPXX|T1_2T|XDXSX")
    with pytest.warns(UserWarning, match=r"no soup in demand \(ttt,oot\) can be made"):
        parse("cramped_room?start_all_orders=ttt,oot")
    with pytest.warns(UserWarning, match="no player can reach"), pytest.warns(UserWarning, match="no soup in demand"):
        parse("XXPXXX|T12XOX|XDSXXX")
    parse("XXPXX|T1_2T|XDXSX?start_all_orders=ooo,tt")  # one of them can be made
    parse("cramped_room?delivery_reward=0")


def test_warnings_point_at_who_asks_for_the_kitchen():
    with pytest.warns(UserWarning, match="layout") as caught:
        jaxscope.make("overcooked/XXPXXX|O1_2XP|XDXSXX", start_all_orders="ttt")
    assert len(caught) == 2  # of a pot and of the orders
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("", "Overcooked needs a layout, one of asymmetric_advantages"),
        ("cramped_rom", "no layout 'cramped_rom'. Did you mean 'cramped_room'"),
        ("cramped_room?horizn=3", "no option 'horizn'. Did you mean 'horizon'"),
        ("cramped_room?horizon=0", "horizon = 0 must be at least 1"),
        ("cramped_room?horizon=1.5", "horizon must be an integer"),
        ("cramped_room?observation=pixels", "observation must be grid or vector"),
        ("cramped_room?recipe_times=2.5,", "recipe_times must be integers separated by commas"),
        ("cramped_room?cook_time=2.5", "cook_time must be an integer"),
        ("cramped_room?old_dynamics=1", "old_dynamics must be true or false"),
        ("cramped_room?rnd_obj_prob_thresh=1.5", "must be a probability"),
        ("cramped_room?max_num_ingredients=8", "must be 1 to 7"),
        ("cramped_room?num_pots=0", "num_pots = 0"),
        ("cramped_room?start_all_orders=oox", "'oox' is not"),
        ("cramped_room?start_all_orders=oooo", "an order is 1 to 3 letters"),
        ("cramped_room?start_all_orders=oot,oto", "oot twice"),
        ("cramped_room?start_bonus_orders=t", "t is not in start_all_orders"),
        ("cramped_room?start_all_orders=oo&old_dynamics=true", "old_dynamics cook soups of 3"),
        ("cramped_room?delivery_reward=5&recipe_values=(5,)", "delivery_reward and recipe_values exclude each other"),
        ("cramped_room?onion_time=5", "onion_time needs tomato_time too"),
        ("cramped_room?recipe_times=1,2", "one entry per order in start_all_orders, 1"),
        ("cramped_room?cook_time=0", "cook_time = 0 must lie between 1"),
        ("cramped_room?cook_time=9000", "between 1 and 8191"),
        ("cramped_room?onion_time=8000&tomato_time=8000", "would cook 24000 steps"),
        ("cramped_room?delivery_reward=-1.0", "delivery_reward = -1.0 must lie between 0"),
        ("cramped_room?order_bonus=-1", "order_bonus = -1.0 must be at least 0"),
        ("simple_o?start_all_orders=oo", "recipe_values of the layout are for its own orders"),
        ("cramped_room+large_room", "must agree in width, height and number of players"),
        ("cramped_room+cramped_room_single", "cramped_room_single 5 x 4 for 1"),
    ],
)
def test_messages_for_wrong_settings(variant, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(variant)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe_times": (2.5,)}, "recipe_times must be integers separated by commas or none"),
        ({"cook_time": 2.5}, "cook_time must be an integer or none"),
        ({"horizon": 5.5}, "horizon must be an integer"),
        ({"horizon": True}, "horizon must be an integer"),
        ({"num_pots": 1.5}, "num_pots must be an integer"),
        ({"max_num_ingredients": 2.5}, "max_num_ingredients must be an integer"),
        ({"old_dynamics": 1}, "old_dynamics must be true or false"),
        ({"observation": "pixels"}, "observation must be grid or vector"),
        ({"order_bonus": "2"}, "order_bonus must be a number or none"),
    ],
)
def test_settings_are_of_their_kinds_without_a_name_too(settings, message):
    with pytest.raises(ValueError, match=message):
        Overcooked(**settings)


def test_given_values_replace_the_layouts():
    """`counter_circuit` has values and times by ingredient, which others would contradict."""
    table = tables(parse("counter_circuit?delivery_reward=7&cook_time=9"))
    assert table.value[0].max() == 14  # the bonus order
    assert (table.cook_time[0, [objects.recipe(1, 1), objects.recipe(3, 0)]] == 9).all()
    assert tables(Overcooked("counter_circuit")).value[0, objects.recipe(1, 1)] == 68


def test_best_reachable_values():
    made = recipes({}, {"start_all_orders": "ott,o", "recipe_values": (30.0, 5.0)}, 3, old_dynamics=False)
    best = lambda onions, tomatoes: made.best_value[objects.recipe(onions, tomatoes)]  # noqa: E731
    assert best(0, 0) == best(1, 0) == best(0, 1) == best(0, 2) == best(1, 2) == 30
    assert best(2, 0) == best(0, 3) == best(2, 1) == 0

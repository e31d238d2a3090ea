"""Environments by name: what the grammar of names itself allows, whatever the family."""

import sys
from types import ModuleType

import pytest

import jaxscope
from jaxscope import registry
from jaxscope.envs.matching import Matching, parse
from jaxscope.make import ENVIRONMENTS


@pytest.fixture
def two_words(monkeypatch):
    """A family whose name has two words, and which has a default."""
    module = ModuleType(f"{ENVIRONMENTS}.two_words")
    vars(module).update(EXAMPLES=("two_words", "two_words/5"), parse=lambda variant: parse(variant or "3"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    known = registry.names
    monkeypatch.setattr(
        registry, "names", lambda package: [*known(package), *["two_words"] * (package == ENVIRONMENTS)]
    )


def test_hyphens_and_underscores_are_the_same_in_a_family(two_words):
    assert jaxscope.make("two_words/5") == jaxscope.make("two-words/5") == Matching(5)


def test_a_family_with_a_default_needs_no_variant(two_words):
    assert jaxscope.make("two_words") == jaxscope.make("two-words") == Matching(3)
    assert jaxscope.make("two_words", rounds=2) == Matching(3, 2)


def test_a_family_without_a_default_says_what_it_needs():
    for name in ("matching", "matching/"):
        with pytest.raises(ValueError, match="'matching' needs a variant, for example 'matching/4'"):
            jaxscope.make(name)
    with pytest.raises(ValueError, match=r"no environment 'two_words'.*matching/4"):
        jaxscope.make("two_words")


def test_options_in_a_name_and_as_arguments_are_the_same():
    assert jaxscope.make("lbf/8x8-2p-3f?penalty=1") == jaxscope.make("lbf/8x8-2p-3f", penalty=1.0)
    with pytest.raises(ValueError, match=r"has no option 'penalti'.*Did you mean 'penalty'"):
        jaxscope.make("lbf/8x8-2p-3f?penalti=1")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("overcooked/cramped_room", {"horizon": "5"}, "horizon must be an integer"),
        ("overcooked/cramped_room", {"horizon": 200.0}, "horizon must be an integer"),
        ("overcooked/cramped_room", {"recipe_values": ("a",)}, "recipe_values must be numbers"),
        ("overcooked/cramped_room", {"reward_shaping_factor": float("inf")}, "must be finite"),
        ("overcooked/cramped_room", {"no_such": 1}, "has no option 'no_such'"),
        ("lbf/8x8-2p-3f", {"penalty": "much"}, "penalty must be a number"),
    ],
)
def test_options_are_checked_however_they_are_given(name, options, said):
    with pytest.raises(ValueError, match=said):
        jaxscope.make(name, **options)


@pytest.mark.parametrize("bonus", [3, 2.5, float("inf")])
def test_a_changed_option_is_part_of_the_name(bonus):
    env = jaxscope.make("overcooked/cramped_room", order_bonus=bonus)
    assert jaxscope.make(env.name) == env

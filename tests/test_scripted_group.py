"""Scripted partners that share one policy act as each does by itself."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lbf_partner_games import NAMES, QUICK_COMPILE, many, scattered

from jaxscope import make
from jaxscope.agents.scripted import Scripted, partner
from jaxscope.agents.scripted_group import ScriptedGroup, grouped, is_scripted, scripts
from jaxscope.envs.lbf import parse
from jaxscope.panel import Panel, join, subset
from jaxscope.types import View

GAME = parse("2s-8x8-2p-3f")
MEMBERS = [partner(name, GAME) for name in NAMES]


def views(batch):
    return View(jnp.zeros((batch, 1)), scattered(GAME, batch), jnp.arange(batch, dtype=jnp.int32) % 2)


def test_every_member_acts_as_by_itself():
    """Two steps, so that memories matter; all members in one batch, as in training."""
    batch, steps = 32, 2
    policy, params = grouped(MEMBERS)
    view, keys = views(batch), jax.random.split(jax.random.key(0), (steps, batch))

    def play(act, memory):
        memory, actions = many(memory, batch), []
        for step in range(steps):
            action, memory = jax.vmap(act)(memory, view, jax.random.clone(keys)[step])
            actions.append(action)
        return jnp.stack(actions)

    def in_group(index):
        return play(lambda *game: policy.act(index, *game), policy.initial_memory(index))

    def alone():
        return [play(lambda *game, m=m: m.act((), *game), m.initial_memory(())) for m in MEMBERS]

    together = jax.jit(jax.vmap(in_group), compiler_options=QUICK_COMPILE)(params)
    single = jax.jit(alone, compiler_options=QUICK_COMPILE)()
    for name, ours, reference in zip(NAMES, together, single, strict=True):
        np.testing.assert_array_equal(ours, reference, err_msg=name)
    assert len({row.tobytes() for row in np.asarray(together)}) > len(NAMES) // 2


class Ask(NamedTuple):
    """A request for twice a number."""

    number: jax.Array

    def answer(self, env, view):
        del env, view
        return 2 * self.number


class AskFloat(NamedTuple):
    number: jax.Array

    def answer(self, env, view):
        del env
        return self.number + view.seat


def plain(env, memory, view, key):
    del env, key
    return view.seat + memory["count"].astype(jnp.int32), {"count": memory["count"] + 0.5}


def asks(env, memory, view, key):
    del env, view, key
    answer = yield Ask(memory[0])
    return answer, (answer, memory[1] + 1)


def asks_otherwise(env, memory, view, key):
    del env, view, key
    answer = yield AskFloat(jnp.float32(3.0))
    return answer.astype(jnp.int32), memory


def asks_twice(env, memory, view, key):
    first = yield Ask(view.seat)
    second = yield Ask(first)
    return second, memory


def starts(env):
    return {"count": jnp.float32(1.5)}


def pair(env):
    return (jnp.int32(5), jnp.int32(0))


def test_rules_may_ask_for_different_things_or_nothing_and_keep_memories_of_any_shape():
    env = make("matching/4-8r")
    rules = [Scripted(env, plain, starts), Scripted(env, asks, pair), Scripted(env, asks_otherwise)]
    policy, params = grouped(rules)
    view = View(jnp.zeros(1), (), jnp.int32(1))
    for index, want in zip(params, ([2, 3, 3], [10, 20, 40], [4, 4, 4]), strict=True):
        memory, actions = policy.initial_memory(index), []
        for _ in range(3):
            action, memory = policy.act(index, memory, view, jax.random.key(0))
            actions.append(int(action))
        assert actions == want


def test_a_rule_may_ask_once():
    rule = Scripted(make("matching/4-8r"), asks_twice)
    with pytest.raises(ValueError, match="asks twice"):
        rule.act((), (), View(jnp.zeros(1), (), jnp.int32(1)), jax.random.key(0))


def test_groups_are_equal_by_their_members():
    some, again = (grouped([partner(name, GAME) for name in ("stay", "follower")])[0] for _ in range(2))
    assert some == again
    assert hash(some) == hash(again)
    assert some != grouped(MEMBERS)[0]
    assert grouped([MEMBERS[0]] * 3) == (MEMBERS[0], ())


def test_panels_keep_scripts_in_one_kind():
    """Joined and picked apart, names go with the scripts they had."""
    first = Panel.scripted(GAME, ["follower", "stay", "random"])
    renamed = Panel(tuple(f"other {name}" for name in first.names), first.policies, first.population)
    both = join(renamed, Panel.scripted(GAME, ["sweeper", "stay"]))
    assert len(both.policies) == 1
    (params,) = both.population.members

    def rules(panel):
        (policy,), (params,) = panel.policies, panel.population.members
        return [script.rule.__module__.rpartition(".")[2] for script in scripts(policy, params, len(panel.names))]

    assert rules(both) == ["follower", "stay", "random", "sweeper", "stay"]
    assert isinstance(both.policies[0], ScriptedGroup)
    assert len(both.policies[0].members) == 4
    assert params.tolist() == [0, 1, 2, 3, 1]
    some = subset(both, [4, 0])
    assert some.names == ("other follower", "stay")
    assert rules(some) == ["follower", "stay"]
    assert subset(both, [1, 4]).policies == (partner("stay", GAME),)
    assert all(is_scripted(policy) for policy in both.policies)

"""Scripted partners: a rule in a file becomes a policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar

from jaxtyping import Array, PRNGKeyArray

from jaxscope import registry
from jaxscope.types import Environment, PyTree, View

PARTNERS = "jaxscope.agents.partners"
ROLES = ("training", "held-out", "bound")


class Request(Protocol):
    """Something costly that a rule asks for: a pytree of arrays of one game.

    Rules that ask for the same kind of thing have it computed once for all of them when they act together.
    """

    def answer(self, env: Any, view: View) -> PyTree:
        """What was asked for, in the game that the asking rule was shown."""
        ...


T = TypeVar("T")
Turn = tuple[Array, PyTree]  # an action and the next memory
Asking = Generator[Request, Any, Turn]  # a rule that stops at a request, is sent the answer, and then returns its turn
Rule = Callable[[Any, Any, View, PRNGKeyArray], Turn | Asking]


def _no_memory(env: Environment) -> tuple[()]:
    del env
    return ()


@dataclass(frozen=True)
class Scripted:
    """A policy whose rule is a function of one game; it has no parameters (`()`)."""

    env: Environment
    rule: Rule
    start: Callable[[Environment], PyTree] = _no_memory

    def initial_memory(self, params: PyTree) -> PyTree:
        del params
        return self.start(self.env)

    def act(self, params: PyTree, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
        del params
        return self.turn(memory, view, key, lambda request: request.answer(self.env, view))

    def turn(self, memory: PyTree, view: View, key: PRNGKeyArray, reply: Callable[[Request], PyTree]) -> Turn:
        """The rule's turn, with `reply` answering what it may ask for.

        Raises:
            ValueError: the rule asks twice in one turn.
        """
        turn = self.rule(self.env, memory, view, key)
        if not isinstance(turn, Generator):
            return turn
        return answered(turn, reply)

    def request(self, memory: PyTree, view: View, key: PRNGKeyArray) -> Request | None:
        """What the rule asks for before its turn; None if it asks for nothing."""
        turn = self.rule(self.env, memory, view, key)
        return next(turn, None) if isinstance(turn, Generator) else None


def answered(asking: Generator[Request, Any, T], reply: Callable[[Request], PyTree]) -> T:
    """What `asking` returns once `reply` has answered its request.

    Raises:
        ValueError: it asks twice.
    """
    try:
        request = next(asking)
        asking.send(reply(request))
    except StopIteration as end:
        return end.value
    raise ValueError("a rule asks twice in one turn; it may ask once")


def family(env_name: str) -> str:
    """The environment family of a name: `lbf` of `lbf/8x8-2p-3f`, `discrete` of `discrete:pmr`."""
    return re.split("[/:?]", env_name)[0].replace("-", "_")


def partner_names(env_name: str, role: str | None = None) -> list[str]:
    """Names of the scripted partners of an environment or family, those of every environment included.

    Args:
        env_name: an environment's name or a family, `lbf/8x8-2p-3f` or `lbf`.
        role: only those of one role: `training`, `held-out` (never met in training) or `bound` (reference points).
    """
    if role is not None and role not in ROLES:
        raise ValueError(registry.unknown("there is no partner role", role, ROLES))
    modules = {name: module for name, module in _modules(env_name).items() if role in (None, module.ROLE)}
    return sorted(modules)


def partner(name: str, env: Environment) -> Scripted:
    """The scripted partner `name` for `env`; hyphens and underscores are the same.

    Raises:
        ValueError: there is no such partner for this environment; the message lists those there are.
    """
    modules = _modules(env.name)
    name = name.replace("_", "-")
    if name not in modules:
        problem = registry.unknown(f"{family(env.name)} has no scripted partner", name, sorted(modules))
        inner = env.name.partition(":")[2]
        if inner and name in _modules(inner):
            problem += f" That of {family(inner)} plays in {family(inner)} itself only, with its actions."
        raise ValueError(problem)
    module = modules[name]
    return Scripted(env, module.act, getattr(module, "initial_memory", _no_memory))


def description(name: str, env_name: str) -> str:
    """The behaviour of a scripted partner in one line: the first line of its file."""
    return (_modules(env_name)[name].__doc__ or "").strip().splitlines()[0]


def role(name: str, env_name: str) -> str:
    """`training`, `held-out` or `bound`."""
    return _modules(env_name)[name].ROLE


def _modules(env_name: str) -> dict[str, ModuleType]:
    """Partner files that serve an environment, by name with hyphens."""
    folders = [PARTNERS]
    if family(env_name) in registry.names(PARTNERS):
        folders.append(f"{PARTNERS}.{family(env_name)}")
    modules = {}
    for folder in folders:
        for name in registry.names(folder):
            module = registry.load(folder, name)
            if not hasattr(module, "__path__"):
                modules[name.replace("_", "-")] = module
    return modules

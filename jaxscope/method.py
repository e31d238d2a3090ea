"""What a training method is: a file whose functions the run loop calls, and nothing that knows the method by name.

A file in `jaxscope/zsc/` is a method when it has the attributes of `Method`. Its state may be any pytree with `params`,
the weights of the policy that the method is after, and is checkpointed whole.
"""

from __future__ import annotations

from typing import Any, Protocol

from jaxtyping import PRNGKeyArray

from jaxscope.metrics import Metrics
from jaxscope.population import Population
from jaxscope.types import Environment, LearnedPolicy, Policy, PyTree


class MethodConfig(Protocol):
    """A frozen dataclass of settings: each field is an option of `jaxscope train`."""

    @property
    def iterations(self) -> int:
        """Iterations of a whole run."""
        ...

    @property
    def frames_per_iteration(self) -> int:
        """Joint steps of an environment that one iteration takes."""
        ...

    @property
    def num_envs(self) -> int:
        """Environments that step at a time, which several devices may share."""
        ...


class Method(Protocol):
    """The attributes of a method's file."""

    Config: type
    """A `MethodConfig` with a default for every field."""
    MEETS_PARTNERS: bool
    """Whether `init` and `iteration` are given partners."""

    def policy(self, cfg: Any, env: Environment) -> LearnedPolicy:
        """The policy that is trained, and whose weights are the state's `params`."""
        ...

    def init(
        self, cfg: Any, env: Environment, policies: tuple[Policy, ...], population: Population | None, key: PRNGKeyArray
    ) -> Any:
        """The state before the first iteration, for one seed."""
        ...

    def iteration(self, cfg: Any, env: Environment, policies: tuple[Policy, ...], learner: Any) -> tuple[Any, Metrics]:
        """One rollout and update: a pure function, compiled together with several more."""
        ...

    def partition(self, learner: Any) -> PyTree:
        """A tree prefix of the state, of `PartitionSpec`s: which axes hold environments (`placement.ENVIRONMENTS`)."""
        ...

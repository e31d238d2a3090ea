"""Goes to the landmark that its teammate is heading for; while the teammate hardly moves, it brakes and waits."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import Point, brake, distance, steer
from jaxscope.agents.partners.pmr._scene import Turn, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "training"
#: Slower than this, per unit of time, the teammate is heading nowhere.
SLOW = 0.15
#: Heading for the landmark nearest to where it would be after this time.
AHEAD = 1.0


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """It goes also to the landmark at which the teammate rests. Asks of a cooperator to show its way; no memory."""
    del key
    own, mate = look(view)
    landmark = nearest(env, Point(mate.x + AHEAD * mate.vx, mate.y + AHEAD * mate.vy)).place
    moves = mate.vx * mate.vx + mate.vy * mate.vy >= SLOW**2
    rests_there = distance(mate, landmark) < env.reach
    return jnp.where(moves | rests_there, steer(own, landmark), brake(own)), memory

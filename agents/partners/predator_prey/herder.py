"""Runs around the prey nearest to its teammate and drives it towards the teammate from behind."""

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from jaxscope.agents.partners._plane import Place, Point, beyond, choose, distance, either, rush, steer
from jaxscope.agents.partners.predator_prey._scene import Turn, go_home, look, near_mate
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"
#: How far behind the prey it drives, and how far beside the prey it passes on its way there.
BEHIND, BESIDE = 0.35, 0.45
#: Nearer to its place than this it no longer runs.
NEAR = 0.2


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Without its teammate or any prey in sight it goes to the middle; no memory.

    Asks of a cooperator to let prey come, and to take a stag between the two of them.
    """
    del key
    scene = look(env, view)
    target = choose(near_mate(scene), scene.seen, scene.prey)
    goal = _way_behind(scene.own, scene.mate, target.place)
    drives = jnp.where(distance(scene.own, goal) > NEAR, rush(scene.own, goal), steer(scene.own, goal))
    return jnp.where(target.found & scene.mate_seen, drives, go_home(scene)), memory


def _way_behind(own: Place, mate: Place, prey: Place) -> Point:
    """The place behind the prey as the teammate sees it; from before the prey first one beside it."""
    ahead = beyond(mate, prey, 1.0)
    along = ahead.x - prey.x, ahead.y - prey.y  # of length 1, away from the teammate
    offset = own.x - prey.x, own.y - prey.y
    side = jnp.where(_dot((-along[1], along[0]), offset) >= 0, BESIDE, -BESIDE)
    beside = Point(prey.x - side * along[1], prey.y + side * along[0])
    return either(_dot(along, offset) < -0.05, beside, beyond(mate, prey, BEHIND))


def _dot(a: tuple[Array, Array], b: tuple[Array, Array]) -> Array:
    return a[0] * b[0] + a[1] * b[1]

"""Scripted hunting partners behave as their descriptions say, and return what their published rules return."""

import jax
import jax.numpy as jnp
import numpy as np
from point_mass_partner_games import assert_means_agree, play, returns_of, thrusts_while
from point_mass_reference import arrays
from test_predator_prey import state_of

from jaxscope.agents.partners.predator_prey.impatient_stag_hunter import REST, TRIES
from jaxscope.agents.scripted import partner
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import View

ENV = PredatorPrey()
#: Prey 0 and 2 are stags; 0 is east, then counter-clockwise.
STAGS = (1, 0, 1, 0, 0)
PREY = ((1.0, 0.0), (0.3, 0.95), (-0.8, 0.6), (-0.8, -0.6), (0.3, -0.95))


def game(own, mate=(0.0, -0.2), prey=PREY, stags=STAGS, caught=(), own_velocity=(0, 0)):
    velocity = [own_velocity, *[(0, 0)] * (1 + len(prey))]
    return state_of([own, mate, *prey], velocity, stags, [k not in caught for k in range(len(prey))])


def targets_while(name, games, seed=0):
    """What the first predator rushes at in each of the games: a prey, `home`, or `rest` for no thrust at all."""
    targets = []
    for state, thrust in zip(games, thrusts_while(name, ENV, games, seed), strict=True):
        own = np.array([state.predators[0].x, state.predators[0].y])
        places = {**dict(enumerate(arrays(state.prey)[0])), "home": np.zeros(2)}
        ways = {what: (place - own) / np.linalg.norm(place - own) for what, place in places.items()}
        fits = [what for what, way in ways.items() if np.allclose(thrust, way, atol=1e-4)]
        targets.extend(["rest"] if (thrust == 0).all() else fits)
    assert len(targets) == len(games)
    return targets


def target(name, *where, **more):
    return targets_while(name, [game(*where, **more)])[0]


def assert_steers(name, state, place):
    """The first thrust is the one that brings the body to rest on the place."""
    own = state.predators[0]
    want = 1.5 * (np.array(place) - [own.x, own.y]) - 0.8 * np.array([own.vx, own.vy])
    np.testing.assert_allclose(thrusts_while(name, ENV, [state])[0], np.clip(want, -1, 1), atol=1e-5)


ALL = range(5)


def test_those_without_a_target_go_home_and_rest_there():
    for name in (
        "closest-prey",
        "teammate-biased",
        "rabbit-only",
        "stag-only",
        "farthest-prey",
        "herder",
        "keeps-apart",
    ):
        assert target(name, (0.5, 0.3), caught=ALL) == "home"
        assert target(name, (0.05, 0.03), caught=ALL) == "rest"


def test_closest_prey_takes_any_kind_and_chooses_anew():
    games = [game((0.4, 0.1)), game((0.2, 0.4)), game((-0.4, 0.3)), game((-0.6, 0.1), caught=[2])]
    assert targets_while("closest-prey", games) == [0, 1, 2, 3]


def test_teammate_biased_hunts_with_its_teammate_while_it_sees_it():
    games = [game((0.4, 0.1), (-0.4, 0.3)), game((0.4, 0.1), (0.2, -0.5)), game((0.7, 0.1), (-0.9, 0.1))]
    assert targets_while("teammate-biased", games) == [2, 4, 0]


def test_rabbit_only_ignores_stags():
    assert target("rabbit-only", (0.8, 0.1)) == 1
    assert target("rabbit-only", (0.5, 0.1), caught=[1, 3, 4]) == "home"
    games = play("predator_prey", "rabbit-only", "stay")
    assert (games.events["stag_caught"] == 0).all()
    assert games.events["rabbit_caught_alone"][..., 0].sum(0).mean() > 1


def test_stag_only_ignores_rabbits_and_clings_to_its_stag():
    assert target("stag-only", (0.25, 0.7)) == 0
    assert target("stag-only", (0.8, 0.1)) == 0
    assert target("stag-only", (0.25, 0.7), caught=[0, 2]) == "home"
    games = play("predator_prey", "stag-only", "stay")
    assert games.events["stag_held"][-5:, :, 0].mean() > 0.6
    assert games.events["rabbit_caught_alone"].sum() < 6


def test_patient_stag_hunter_waits_for_its_teammate():
    alone, joined = game((0.4, 0.1)), game((0.4, 0.1), (0.9, -0.15))
    way = (np.array([0.4, 0.1]) - [1, 0]) / np.hypot(0.6, 0.1)
    assert_steers("patient-stag-hunter", alone, np.array([1, 0]) + 0.375 * way)
    assert targets_while("patient-stag-hunter", [joined]) == [0]
    assert target("patient-stag-hunter", (0.4, 0.1), caught=[0, 2]) == 1
    held = [
        play("predator_prey", name, "stay").events["stag_held"][..., 0].mean()
        for name in ("patient-stag-hunter", "stag-only")
    ]
    assert held[0] < 0.2 * held[1]


def test_impatient_stag_hunter_gives_up_for_a_while():
    games = [game((0.4, 0.1))] + [game((0.85, 0.05))] * (TRIES + REST + 2)
    assert targets_while("impatient-stag-hunter", games) == [0] * (1 + TRIES) + [1] * REST + [0] * 2
    assert target("impatient-stag-hunter", (0.4, 0.1), caught=[0, 2]) == 1


def test_rabbits_then_stags():
    games = [game((0.8, 0.1)), game((0.8, 0.1), caught=[1]), game((0.7, 0.1), caught=[1, 3, 4])]
    assert targets_while("rabbits-then-stags", games) == [1, 4, 0]


def test_follower_keeps_its_distance_to_its_teammate():
    np.testing.assert_allclose(thrusts_while("follower", ENV, [game((0.9, 0.1), (0.1, 0.1))]), [(-1, 0)], atol=1e-6)
    assert_steers("follower", game((0.2, 0.1), (0.1, 0.1), own_velocity=(0.5, 0.2)), (0.2, 0.1))
    assert target("follower", (0.9, 0.1), (-0.9, 0.1)) == "home"
    position = play("predator_prey", "follower").position[10:]
    apart = np.linalg.norm(position[:, :, 0] - position[:, :, 1], axis=-1)
    assert 0.2 < np.median(apart) < 0.6  # that of others is above 1


def test_farthest_prey_commits():
    games = [game((0.4, 0.1)), game((-0.3, -0.3)), game((0.3, 0.3), caught=[3]), game((-0.5, -0.5), caught=[3])]
    assert targets_while("farthest-prey", games) == [3, 3, 4, 4]


def test_fixed_choice_draws_each_visible_prey_equally_often_and_keeps_it():
    policy, state = partner("fixed-choice", ENV), game((0.1, 0.1), caught=[2])

    @jax.jit
    def act(memory, state, keys):
        view = View(jnp.zeros(()), state, jnp.int32(0))
        return jax.vmap(lambda memory, key: policy.act((), memory, view, key)[1])(memory, keys)

    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (800, *leaf.shape)), policy.initial_memory(()))
    chosen = act(start, state, jax.random.split(jax.random.key(0), 800))
    np.testing.assert_allclose(np.bincount(chosen.prey, minlength=5) / 800, [0.25, 0.25, 0, 0.25, 0.25], atol=0.06)
    kept = act(chosen, state, jax.random.split(jax.random.key(1), 800))
    np.testing.assert_array_equal(kept.prey, chosen.prey)
    after = act(chosen, game((0.1, 0.1), caught=[2, 3]), jax.random.split(jax.random.key(2), 800))
    np.testing.assert_array_equal(after.prey[chosen.prey != 3], chosen.prey[chosen.prey != 3])
    assert set(np.asarray(after.prey[chosen.prey == 3])) == {0, 1, 4}
    targets = targets_while("fixed-choice", [game((0.1, 0.1)), game((-0.3, 0.3)), game((0.3, 0.2))])
    assert len(set(targets)) == 1


def test_clockwise_prey_keeps_to_the_order():
    caught = [[], [0], [0, 4], [0, 4, 3], [0, 4, 3, 2], [0, 4, 3, 2, 1]]
    games = [game((0.1, 0.2), caught=gone) for gone in caught]
    assert targets_while("clockwise-prey", games) == [0, 4, 3, 2, 1, "home"]
    assert target("clockwise-prey", (-0.6, 0.0)) == 4  # the first is out of sight


def test_herder_runs_around_the_prey_of_its_teammate_and_drives_it():
    assert target("herder", (0.9, 0.1), (-0.9, 0.1)) == "home"
    # The prey in the east, from before it past its northern side, then to behind it.
    for own, place in (((0.4, 0.1), (1.0, 0.45)), ((1.0, 0.45), (1.35, 0.0))):
        (thrust,) = thrusts_while("herder", ENV, [game(own, (0.2, 0.0))])
        way = np.array(place) - own
        np.testing.assert_allclose(thrust, way / np.linalg.norm(way), atol=1e-5)
    assert_steers("herder", game((1.3, 0.1), (0.2, 0.0)), (1.35, 0.0))

    games = play("predator_prey", "herder", "stay")
    assert (games.events["rabbit_caught_alone"] == 0).all()
    prey, own, mate = arrays(games.states.prey)[0], games.position[:, :, 0], games.position[:, :, 1]
    chosen = np.argmin(np.linalg.norm(prey - mate[:, :, None], axis=-1), -1)
    prey = np.take_along_axis(prey, chosen[..., None, None], 2)[:, :, 0]
    behind = ((own - prey) * (prey - mate)).sum(-1) > 0
    assert behind[:3].mean() == 0
    assert behind.any(0).mean() > 0.8
    # Where it has been behind one and the same prey to the end, that has come as near as it dares to.
    steady = behind[-7:].all(0) & (chosen[-7:] == chosen[-1]).all(0)
    apart = np.linalg.norm(prey - mate, axis=-1)[-7:, steady]
    assert steady.sum() >= 5
    assert ((apart[-1] < apart[0] - 0.02) | (apart[0] < 0.55)).mean() > 0.9


def test_keeps_apart_hunts_on_the_other_side():
    games = [game((0.1, 0.1), (0.5, 0.1)), game((0.1, 0.1), (-0.4, 0.5)), game((-0.7, 0.0), (0.9, 0.1))]
    assert targets_while("keeps-apart", games) == [3, 4, 1]
    position = play("predator_prey", "keeps-apart").position[12:]
    assert np.linalg.norm(np.diff(position, axis=2), axis=-1).mean() > 1.5


def test_hunters_of_a_half_stay_in_it():
    assert target("north-hunter", (0.3, -0.5)) == 1
    assert target("south-hunter", (0.3, 0.5)) == 4
    assert_steers("north-hunter", game((0.3, -0.5), caught=[1, 2]), (0, 0.5))
    assert_steers("south-hunter", game((0.3, 0.5), caught=[3, 4]), (0, -0.5))
    for name, side in (("north-hunter", 1), ("south-hunter", -1)):
        position = play("predator_prey", name, "stay").position[5:, :, 0, 1]
        assert (side * position > -0.15).mean() > 0.95


def test_pairs_return_what_the_published_rules_return():
    """Means of 1500 episodes of the same rules on mpe2's physics; rows are the first seat."""
    held_out = ["closest-prey", "teammate-biased", "rabbit-only", "stag-only"]
    published = [
        [0.44, 0.27, 0.83, 0.00],
        [0.90, 1.71, 1.16, 0.67],
        [1.70, 0.72, 0.83, 1.85],
        [1.17, 0.84, 1.34, 0.83],
        [0.67, 1.87, 0.83, 0.52],
    ]
    assert_means_agree(returns_of(ENV, ["stay", *held_out], held_out, 500), np.array(published), 1500)

"""Scripted rendezvous partners behave as their descriptions say, and return what their published rules return."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from point_mass_partner_games import assert_means_agree, play, returns_of, thrusts_while
from test_pmr import state_of

from jaxscope.agents.partners.pmr.clockwise_tour import WAIT
from jaxscope.agents.partners.pmr.delayed_follower import DELAY
from jaxscope.agents.partners.pmr.regroup_then_diverge import PATIENCE as REGROUPING
from jaxscope.agents.partners.pmr.stubborn_then_yields import PATIENCE as STUBBORN
from jaxscope.agents.scripted import partner
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.types import View

ENV = PMR()
CORNERS = dict(zip(LANDMARKS, np.array(ENV.landmarks), strict=True))


def game(own, mate, own_velocity=(0, 0), mate_velocity=(0, 0)):
    return state_of([own, mate], [own_velocity, mate_velocity])


def goals_while(name, games, seed=0, **others):
    """What the first agent goes to in each of the games: a landmark, `brake`, `mate` or one of the other places.

    A place is recognised by the thrust that brings a body to rest there.
    """
    goals = []
    for state, thrust in zip(games, thrusts_while(name, ENV, games, seed), strict=True):
        own, mate = (np.array([body.x, body.y]) for body in state.agents)
        velocity = np.array([state.agents[0].vx, state.agents[0].vy])
        places = {**CORNERS, "brake": own, "mate": mate, **others}
        fits = [
            n
            for n, p in places.items()
            if np.allclose(thrust, np.clip(1.5 * (p - own) - 0.8 * velocity, -1, 1), atol=1e-5)
        ]
        assert len(fits) == 1, (fits, thrust)
        goals.extend(fits)
    return goals


def goal(name, *where, seed=0, **others):
    """What the first agent goes to at the start of an episode."""
    return goals_while(name, [game(*where)], seed, **others)[0]


# Away from the lines on which two landmarks are equally near, and slow enough that thrusts are not all clipped.
EASTERLY, NORTHERLY, WESTERLY = (0.6, 0.25), (-0.2, 0.6), (-0.6, -0.25)


@pytest.mark.parametrize("name", LANDMARKS)
def test_always_goes_to_its_landmark(name):
    for own in (EASTERLY, NORTHERLY, WESTERLY):
        assert goal(f"always-{name}", own, (0.1, 0.1)) == name
    games = play("pmr", f"always-{name}", "stay")
    apart = np.linalg.norm(games.position[-1, :, 0] - CORNERS[name], axis=-1)
    assert apart.max() < 0.05


def test_closest_landmark_chooses_anew():
    games = [game(EASTERLY, WESTERLY), game(NORTHERLY, EASTERLY), game(WESTERLY, EASTERLY)]
    assert goals_while("closest-landmark", games) == ["east", "north", "west"]


def test_farthest_landmark_commits():
    games = [game(EASTERLY, WESTERLY), game(NORTHERLY, EASTERLY), game(WESTERLY, EASTERLY)]
    assert goals_while("farthest-landmark", games) == ["west"] * 3


def test_teammate_biased_goes_where_its_teammate_is():
    games = [game((0.1, 0.2), EASTERLY), game((0.1, 0.2), NORTHERLY), game((0.1, 0.2), WESTERLY)]
    assert goals_while("teammate-biased", games) == ["east", "north", "west"]


def test_regroup_then_diverge_meets_and_leaves():
    apart, together = game((0.4, 0.15), (-0.2, 0.0)), game((0.4, 0.15), (0.2, 0.1))
    assert goals_while("regroup-then-diverge", [apart, apart, together, apart]) == ["mate", "mate", "west", "west"]
    later = goals_while("regroup-then-diverge", [apart] * (REGROUPING + 2))
    assert later == ["mate"] * REGROUPING + ["west"] * 2


@pytest.mark.parametrize("name", ["random-landmark", "leader"])
def test_draws_each_landmark_equally_often_and_keeps_it(name):
    policy, state = partner(name, ENV), game((0.1, 0.1), (0.2, 0.2))

    @jax.jit
    def act(memory, keys):
        view = View(jnp.zeros(()), state, jnp.int32(0))
        return jax.vmap(lambda memory, key: policy.act((), memory, view, key)[1])(memory, keys)

    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (800, *leaf.shape)), policy.initial_memory(()))
    chosen = act(start, jax.random.split(jax.random.key(0), 800))
    np.testing.assert_allclose(np.bincount(chosen.landmark, minlength=4) / 800, 0.25, atol=0.06)
    kept = act(chosen, jax.random.split(jax.random.key(1), 800))
    np.testing.assert_array_equal(kept.landmark, chosen.landmark)


def test_random_landmark_goes_to_what_it_has_drawn():
    games = [game((0.1, 0.2), EASTERLY), game(NORTHERLY, WESTERLY), game(WESTERLY, EASTERLY)]
    first = [goals_while("random-landmark", games, seed) for seed in range(0, 60, 5)]
    assert all(len(set(goals)) == 1 for goals in first)
    assert {goals[0] for goals in first} == set(LANDMARKS)


def test_leader_waits_for_its_teammate():
    near, far = game((0.1, 0.2), (0.3, 0.2)), game((0.1, 0.2), (-0.6, 0.2))
    first, second, third, fourth = goals_while("leader", [near, far, near, far])
    assert second == fourth == "brake"
    assert first == third in LANDMARKS
    alone = play("pmr", "leader", "stay").position
    assert np.median(np.linalg.norm(alone[-1, :, 0] - alone[-1, :, 1], axis=-1)) < 0.9


def test_delayed_follower_goes_where_its_teammate_was():
    way = [(0.05 * step, -0.4 + 0.02 * step) for step in range(2 * DELAY)]
    games = [game((0.3, 0.3), place) for place in way]
    places = {f"place {step}": np.array(place) for step, place in enumerate(way)}
    for step, state in enumerate(games):
        # Named apart from `mate`, which is the place of the moment.
        thrust = thrusts_while("delayed-follower", ENV, games[: step + 1])[-1]
        goal_now = places[f"place {max(step - DELAY, 0)}"]
        np.testing.assert_allclose(thrust, np.clip(1.5 * (goal_now - [0.3, 0.3]), -1, 1), atol=1e-5)
        assert state.time == 0


def test_clockwise_tour_goes_round_and_waits_at_each_landmark():
    assert goal("clockwise-tour", NORTHERLY, EASTERLY) == "north"
    games = play("pmr", "clockwise-tour", "stay")
    reached = np.stack([games.events[f"reached_{name}"][..., 0] for name in LANDMARKS], -1)  # [T, B, 4]
    there = np.linalg.norm(games.position[:, :, 0, None] - np.array(ENV.landmarks), axis=-1) < ENV.reach
    for b in range(reached.shape[1]):
        times, order = np.nonzero(reached[:, b])
        assert len(order) >= 2
        assert (np.diff(order) % 4 == 3).all()
        np.testing.assert_array_equal(
            order[0], np.argmin(np.linalg.norm(games.position[0, b, 0] - list(CORNERS.values()), axis=-1))
        )
        for time, index in zip(times[:-1], order[:-1], strict=True):
            assert there[time + 1 :, b, index][:WAIT].all()


def test_team_center_goes_to_the_landmark_nearest_the_midpoint():
    games = [game((-0.2, 0.1), (0.9, 0.3)), game((0.3, 0.1), (-0.1, 0.9)), game((0.2, 0.1), (-0.9, 0.2))]
    assert goals_while("team-center", games) == ["east", "north", "west"]


def test_stubborn_keeps_to_its_landmark_and_yields_at_last():
    games = [game(EASTERLY, NORTHERLY)] + [game((0.1, 0.2), WESTERLY)] * STUBBORN + [game((0.1, 0.2), NORTHERLY)]
    assert goals_while("stubborn-then-yields", games) == ["east"] * STUBBORN + ["west", "north"]


def test_waiter_waits_until_its_teammate_is_somewhere():
    moving = (0.4, -0.2)
    games = [game((0.1, 0.2), (0.3, 0.3), moving), game((0.1, 0.2), (0.7, 0.1), moving), game((0.1, 0.2), (0.1, -0.8))]
    assert goals_while("waiter", games) == ["brake", "east", "south"]


def test_away_from_teammate_commits_to_the_other_side():
    games = [game((0.1, 0.2), EASTERLY), game((0.1, 0.2), WESTERLY), game(EASTERLY, NORTHERLY)]
    assert goals_while("away-from-teammate", games) == ["west"] * 3


def test_anticipator_reads_where_its_teammate_is_heading():
    towards_west, slowly = (-0.8, 0.1), (-0.05, 0.0)
    games = [
        game((0.1, 0.2), (0.3, 0.1), (0, 0), towards_west),
        game((0.1, 0.2), (0.3, 0.1), (0.2, 0), slowly),
        game((0.1, 0.2), (0.0, 0.8), (0, 0), slowly),
    ]
    assert goals_while("anticipator", games) == ["west", "brake", "north"]


def test_pairs_return_what_the_published_rules_return():
    """Means of 300 episodes of the same rules on mpe2's physics; who minds its teammate always meets it."""
    names = ["closest-landmark", "farthest-landmark", "regroup-then-diverge", "teammate-biased"]
    returns = returns_of(ENV, names, names, 400)
    assert set(np.unique(returns)) == {0.0, 2.0}
    mean = dict(zip(names, returns, strict=True))
    assert (mean["teammate-biased"][:3] == 2).all()
    assert (returns[:3, 3] == 2).all()
    some = np.stack([mean["closest-landmark"][0], mean["farthest-landmark"][1], mean["closest-landmark"][1]])
    assert_means_agree(some, np.array([0.47, 0.47, 0.59]), 300)
    assert_means_agree(returns_of(ENV, ["random"], ["random"], 600)[0], np.array([0.05]), 300)

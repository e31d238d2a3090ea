"""How policies solve a game that can be solved in several ways, and how many of the ways a population covers.

PopGen (Teiletche et al.; appendix B.5, table 6): in Rendezvous each policy of self-play comes to prefer one of the four
landmarks, and several policies may prefer the same.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def shares(happened: Bool[np.ndarray, "S K E"]) -> Float[np.ndarray, "S K"]:
    """The share of each policy's E episodes that had each of K outcomes; what is left of 1 had none.

    Raises:
        ValueError: an episode had two: the outcomes are not exclusive.
    """
    if (happened.sum(axis=1) > 1).any():
        raise ValueError("an episode had two outcomes that exclude each other")
    return happened.mean(axis=2)


def modes(shares: Float[np.ndarray, "S K"]) -> Bool[np.ndarray, "S K"]:
    """Which outcomes are a policy's most frequent: one, several where they tie, none where it never had any."""
    return (shares == shares.max(axis=1, keepdims=True)) & (shares > 0)


def distinct_modes(modes: Bool[np.ndarray, "S K"], n: int) -> float:
    """The mean number of different modes in a population of `n` of the S policies, over all such populations.

    Each of several modes of one policy is taken for its mode equally often; a policy without a mode adds none. The
    value is exact: a mode is missing from a population with the mean, over all choices of n policies, of the product
    of their probabilities of having another mode. Those means follow policy by policy.

    Raises:
        ValueError: `n` is not from 1 to S.
    """
    policies = len(modes)
    if not 1 <= n <= policies:
        raise ValueError(f"n = {n} must be from 1 to {policies}, the number of policies")
    other = 1 - modes / np.maximum(modes.sum(axis=1, keepdims=True), 1)  # [S, K]
    # [n + 1, K]: the mean of that product over all choices of 0 .. n among the policies so far.
    missing = np.zeros((n + 1, modes.shape[1]))
    missing[0] = 1
    for count, of_policy in enumerate(other, 1):
        chosen = np.arange(1, n + 1)[:, None] / count  # the chance that it is among 1 .. n chosen of `count`
        missing[1:] = np.maximum(1 - chosen, 0) * missing[1:] + np.minimum(chosen, 1) * of_policy[None] * missing[:-1]
    return float((1 - missing[n]).sum())


def expected_distinct(n: int, k: int) -> float:
    """The same by chance: of `n` policies, each with one of `k` modes drawn uniformly. 2.73 for four and four.

    Raises:
        ValueError: `n` or `k` is below 1.
    """
    if min(n, k) < 1:
        raise ValueError(f"n = {n} policies and k = {k} modes: both must be at least 1")
    return k * (1 - (1 - 1 / k) ** n)

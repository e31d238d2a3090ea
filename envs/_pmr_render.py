"""Pictures of the rendezvous game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from ._point_mass_render import Sheet

if TYPE_CHECKING:
    from .pmr import PMR, State

LANDMARK, ZONE = (88, 150, 92), (214, 228, 208)
INITIALS = "ENWS"


def picture(env: PMR, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """Landmarks with their initials in the zones in which an agent is there, and both agents."""
    sheet = Sheet(env.circle_radius + env.reach + 0.1)
    for initial, (x, y) in zip(INITIALS, env.landmarks, strict=True):
        sheet.disc(x, y, env.reach, ZONE)
        sheet.disc(x, y, env.landmark_size, LANDMARK)
        sheet.label(x, y, 0.9 * env.landmark_size, initial)
    for seat, body in enumerate(state.agents):
        sheet.agent(body, env.agent_size, seat)
    return sheet.pixels()

"""Chases the nearest visible prey north of the middle only, and waits in the northern half for want of any."""

from jaxscope.agents.partners.predator_prey._half import hunter

ROLE = "training"
act = hunter(1.0)

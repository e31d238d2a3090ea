"""Goes to the south landmark in every game and stays there."""

from jaxscope.agents.partners.pmr._compass import always

ROLE = "training"
act = always("south")

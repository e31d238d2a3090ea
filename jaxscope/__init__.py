"""jaxscope: train agents against populations of partners, as one compiled JAX program per update."""

from jaxscope.agents.scripted import partner_names as list_partners
from jaxscope.make import list_envs, make

__all__ = ["list_envs", "list_partners", "make"]
__version__ = "0.1.0"

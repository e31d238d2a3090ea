"""jaxscope: train agents against populations of partners, as one compiled JAX program per update."""

from jaxscope.make import list_envs, list_partners, make

__all__ = ["list_envs", "list_partners", "make"]
__version__ = "0.1.0"

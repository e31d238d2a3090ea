"""Language models in Flax: families over shared blocks, real weights, text, generation."""

from jaxscope.agents.llm.pretrained import Pretrained, load, names, save

__all__ = ["Pretrained", "load", "names", "save"]

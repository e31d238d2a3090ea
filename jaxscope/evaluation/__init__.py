"""Judging trained policies: panels of partners, cross-play, bounds and honest intervals."""

from jaxscope.evaluation.crossplay import CrossPlay, crossplay
from jaxscope.evaluation.heldout import Evaluation, evaluate

__all__ = ["CrossPlay", "Evaluation", "crossplay", "evaluate"]

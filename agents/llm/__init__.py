"""Language models in Flax: families, real weights, generation, text."""

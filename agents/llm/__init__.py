"""Language models in Flax: families over shared blocks, weights, text, generation."""

"""Scripted partners for Predator-Prey, one file each; they see as far as the environment lets a predator see."""

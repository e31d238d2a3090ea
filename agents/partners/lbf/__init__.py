"""Scripted partners for Level-Based Foraging, one file each."""

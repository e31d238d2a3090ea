"""Scripted partners for Overcooked, one file each."""

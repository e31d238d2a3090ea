"""Scripted partners for Rendezvous, one file each; everything is visible to them."""

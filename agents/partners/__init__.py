"""Scripted partners: files here play in every environment, a folder holds those of one environment family."""

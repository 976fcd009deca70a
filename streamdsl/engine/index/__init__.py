"""Pairs of integers in slots."""

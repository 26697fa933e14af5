"""SAC's updates on a processor, compiled by Numba: products, networks and whole updates.

XLA hands every step of an update to another kernel and every call to a queue. Here what follows a product finds its
numbers in the cache, and two threads share an update without ever leaving compiled code. `agents/sac.py` says the same
in JAX: that is what runs on accelerators, and what the tests compare with.
"""

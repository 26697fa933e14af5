"""What takes a run's time on a processor, compiled by Numba: SAC's updates, fits of an ensemble, imagined steps.

XLA hands every step of an update to another kernel and every call to a queue. Here what follows a product finds its
numbers in the cache, and two threads share an update without ever leaving compiled code. `agents/sac.py`,
`models/fit.py` and `rollout.py` say the same in JAX: that is what runs on accelerators and what the tests compare with.
"""

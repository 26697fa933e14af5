"""Long computations can be stopped between two of their pieces; then they have changed nothing."""

asked: list[int] = []  # the signals that ask for it, while somebody listens


class Interrupted(Exception):
    """A computation was given up because it was asked to stop."""


def stop_if_asked() -> None:
    """To be called between the pieces of a computation that takes long and changes nothing until its end."""
    if asked:
        raise Interrupted

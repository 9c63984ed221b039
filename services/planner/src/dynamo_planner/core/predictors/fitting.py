"""Fitting models on a machine that others need, too: one at a time, on one thread, without their libraries' noise."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_ONE = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """Holds the process's turn to fit a model.

    Series are short, and linear algebra on several threads then waits more than it computes: on a busy machine of two cores
    a fit took 28 s, and takes 1 s on one thread. Thread limits and warning filters are the process's, hence the turn.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - inspects every library that is loaded

    with _ONE, threadpool_limits(limits=1), warnings.catch_warnings():
        # Of values near the edge of what a model may have: logged again and again, and nothing to act on.
        warnings.simplefilter("ignore")
        yield

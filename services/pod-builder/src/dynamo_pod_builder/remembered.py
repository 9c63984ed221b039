"""Remembers the last result of a pure function for an object, as long as its inputs stay the same.

An object is reconciled many times during a rollout: its status changes, its children report progress, and its desired
objects are the same each time. Comparing the inputs takes microseconds; rendering takes a tenth of a millisecond or
more.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject, size_of

Inputs = TypeVar("Inputs")
Result = TypeVar("Result")

#: Graphs whose result is remembered, least recently used first out: all that are rolled out at the same time.
GRAPHS = 128
#: Component deployments whose result is remembered: most graphs have three. Results: graph 25 KB, component 13 KB.
COMPONENTS = 3 * GRAPHS
#: Results of larger objects are not remembered: many of the largest objects would take gigabytes. Bytes, as JSON.
LARGEST = 16 << 10


def remembered(
    of: Callable[[Any], KubeObject], most: int
) -> Callable[[Callable[[Inputs], Result]], Callable[[Inputs], Result]]:
    """Makes a pure function remember its last result for each of `most` objects; `of` returns the object of the inputs.

    Inputs and results are shared, so they are read only. Inputs are compared by equality. Exceptions are not
    remembered.
    """

    def decorate(work: Callable[[Inputs], Result]) -> Callable[[Inputs], Result]:
        known: OrderedDict[str, tuple[Inputs, Result]] = OrderedDict()

        @wraps(work)
        def remembering(inputs: Inputs) -> Result:
            obj = of(inputs)
            uid = objects.uid(obj)
            # Remove and insert, each an atomic step, because large objects are processed in threads.
            last = known.pop(uid, None)
            if last is None or last[0] != inputs:
                result = work(inputs)
                if size_of(obj) > LARGEST:
                    return result
                last = (inputs, result)
            known[uid] = last
            if len(known) > most:
                known.popitem(last=False)
            return last[1]

        return remembering

    return decorate

"""What a pure function made of an object last time, for as long as its inputs stay the same.

An object is reconciled many times while it is rolled out: its status changes, its children report progress, and what it
should become is the same each time. Comparing the inputs takes microseconds, and rendering a tenth of a millisecond and more.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject, size_of

Inputs = TypeVar("Inputs")
Result = TypeVar("Result")

#: Graphs whose result is remembered, those that were asked for last: all that are rolled out at the same time.
GRAPHS = 128
#: Component deployments whose result is remembered: most graphs have three. A graph's result takes 25 KB, one's of these 13.
COMPONENTS = 3 * GRAPHS
#: What is larger is not remembered: many of the largest objects would take gigabytes. Bytes, as JSON.
LARGEST = 16 << 10


def remembered(
    of: Callable[[Any], KubeObject], most: int
) -> Callable[[Callable[[Inputs], Result]], Callable[[Inputs], Result]]:
    """Makes a pure function remember its last result for each of `most` objects; `of` names the one that inputs are about.

    Inputs and results are shared, so they are for reading. Inputs count as the same where they are equal. What the
    function raises is not remembered.
    """

    def decorate(work: Callable[[Inputs], Result]) -> Callable[[Inputs], Result]:
        known: OrderedDict[str, tuple[Inputs, Result]] = OrderedDict()

        @wraps(work)
        def remembering(inputs: Inputs) -> Result:
            obj = of(inputs)
            uid = objects.uid(obj)
            # Out and in again: each of both is one step, and large objects are worked on in threads.
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

"""`remembered`: equal inputs are computed once, and the cache is bounded."""

import copy
from typing import NamedTuple

import pytest
from dynamo_pod_builder.remembered import LARGEST, remembered
from dynamo_shared.api.objects import KubeObject

MOST = 4


class Inputs(NamedTuple):
    obj: KubeObject
    config: str = ""


def obj(uid: str = "a", **spec: object) -> KubeObject:
    return {"metadata": {"uid": uid}, "spec": spec}


class Work:
    def __init__(self) -> None:
        self.calls: list[Inputs] = []
        self.of = remembered(lambda inputs: inputs.obj, MOST)(self._of)

    def _of(self, inputs: Inputs) -> list[str]:
        self.calls.append(inputs)
        if "refused" in inputs.obj["spec"]:
            raise ValueError("refused")
        return [inputs.obj["metadata"]["uid"], inputs.config]


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        pytest.param([obj(replicas=1)] * 2, 1, id="equal ones"),
        pytest.param([obj(replicas=1), obj(replicas=2), obj(replicas=1)], 3, id="of the time before the last"),
        pytest.param([obj(text="x" * LARGEST)] * 2, 2, id="large ones"),
    ],
)
def test_only_the_last_small_inputs_are_cached(given, calls):
    work = Work()
    results = [work.of(Inputs(copy.deepcopy(each))) for each in given]
    assert len(work.calls) == len({id(each) for each in results}) == calls


@pytest.mark.parametrize(
    ("inputs", "result"),
    [
        pytest.param(Inputs(obj(replicas=2)), ["a", ""], id="another spec"),
        pytest.param(Inputs(obj(replicas=1), "new"), ["a", "new"], id="another configuration"),
        pytest.param(Inputs(obj("b", replicas=1)), ["b", ""], id="another object"),
    ],
)
def test_other_inputs_are_computed_again(inputs, result):
    work = Work()
    work.of(Inputs(obj(replicas=1)))
    assert work.of(inputs) == result
    assert len(work.calls) == 2


def test_an_error_is_raised_each_time():
    work = Work()
    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            work.of(Inputs(obj(refused=True)))
    assert len(work.calls) == 2


def test_the_least_recently_used_object_is_evicted():
    work = Work()
    for number in range(MOST):
        work.of(Inputs(obj(str(number))))
    work.of(Inputs(obj("0")))
    work.of(Inputs(obj("one more")))
    work.calls.clear()
    work.of(Inputs(obj("0")))
    assert work.calls == []
    work.of(Inputs(obj("1")))
    assert len(work.calls) == 1

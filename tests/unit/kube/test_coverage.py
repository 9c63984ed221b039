"""Whether an object that the server returned has all requested fields."""

from typing import Any

import pytest
from dynamo_shared.kube.coverage import drop_foreign, missing
from hypothesis import given
from hypothesis import strategies as st
from yaml import safe_load as load

from tests.building.tables import table_of

Obj = dict[str, Any]

#: The desired and the observed object as YAML.
COVERED = table_of("""
the same | spec: {a: 1} | spec: {a: 1}
defaults and foreign labels | metadata: {labels: {a: b}} | metadata: {labels: {a: b, x: y}}
None asks for nothing | spec: {a: null} | spec: {a: 5}
empty is absent | spec: {labels: {}, args: [], s: ''} | spec: {}
false and zero are absent | spec: {hostNetwork: false, minReadySeconds: 0} | spec: {}
made of nothing is absent | strategy: {x: {y: null}, z: []} | {}
null is absent | spec: {labels: {}} | spec: {labels: null}
amount with another unit | resources: {limits: {cpu: 1000m}} | resources: {limits: {cpu: '1'}}
amount as a number | resources: {limits: {nvidia.com/gpu: 1}} | resources: {limits: {nvidia.com/gpu: '1'}}
binary amount | emptyDir: {sizeLimit: 1Gi} | emptyDir: {sizeLimit: '1073741824'}
storage | requests: {storage: 1024Mi} | requests: {storage: 1Gi}
overhead of a pod | overhead: {cpu: '0.5'} | overhead: {cpu: 500m}
an amount that is rounded up | resources: {limits: {cpu: 100u}} | resources: {limits: {cpu: 1m}}
an amount above the limit of Kubernetes |
    resources: {limits: {memory: 9Ei}} |
    resources: {limits: {memory: '9223372036854775807'}}
targets of an autoscaler, which come back in their shortest form |
    metrics: [{external: {metric: {name: m}, target: {type: Value, value: '1000'}}}] |
    metrics: [{external: {metric: {name: m}, target: {type: Value, value: 1k}}}]
a target that is averaged, as a number with a fraction |
    target: {type: AverageValue, averageValue: 0.5} |
    target: {type: AverageValue, averageValue: 500m}
tolerance of an autoscaler | scaleUp: {tolerance: '0.05'} | scaleUp: {tolerance: 50m}
divisor of a resource |
    resourceFieldRef: {resource: limits.cpu, divisor: 1000m} |
    resourceFieldRef: {resource: limits.cpu, divisor: '1'}
int or string | targetPort: 8000 | targetPort: '8000'
whole float | weight: 1 | weight: 1.0
entries by name, in another order, with defaults |
    containers: [{name: a, image: x}, {name: b, image: y}] |
    containers: [{name: b, image: y, tty: true}, {name: a, image: x}]
mounts by path, though one volume is mounted twice |
    volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}] |
    volumeMounts: [{name: v, mountPath: /b}, {name: v, mountPath: /a}]
ports by number and protocol, which is TCP by default |
    ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}] |
    ports: [{containerPort: 1, protocol: UDP}, {containerPort: 1, protocol: TCP}]
entries by position | tolerations: [{key: a}] | tolerations: [{key: a, operator: Exists}]
plain values | args: [a, b] | args: [a, b]
finalizers of others | metadata: {finalizers: [own]} | metadata: {finalizers: [theirs, own]}
owners of others |
    metadata: {ownerReferences: [{uid: '1', name: a}]} |
    metadata: {ownerReferences: [{uid: '2', name: a}, {uid: '1', name: a, controller: true}]}
emptyDir | volumes: [{name: v, emptyDir: {}}] | volumes: [{name: v, emptyDir: {}}]
an empty selector | nodeSelector: {} | nodeSelector: {a: b}
same env | env: [{name: A, value: ''}] | env: [{name: A}]
""")

MISSING = table_of("""
absent | spec: {a: 1} | {} | spec
different | spec: {a: 1} | spec: {a: 2} | spec.a
other kind of value | spec: {a: {b: 1}} | spec: {a: b} | spec.a
true is not 1 | a: true | a: 1 | a
false is not 0 | a: false | a: 0 | a
label | metadata: {labels: {a/b: c}} | metadata: {labels: {a/b: d}} | metadata.labels.a/b
entry by name |
    spec: {containers: [{name: main, image: x}]} |
    spec: {containers: [{name: main, image: y}]} |
    spec.containers[name=main].image
entry is gone | c: [{name: a}, {name: b}] | c: [{name: a}, {name: x}] | c[name=b]
an entry more | c: [{name: a}] | c: [{name: a}, {name: sidecar}] | c
an entry where none is desired | c: [] | c: [{name: sidecar}] | c
entry by position | t: [{key: a}] | t: [{key: b}] | t[0].key
plain values in another order | args: [a, b] | args: [b, a] | args[0]
port | ports: [{port: 80, name: x}] | ports: [{port: 80, name: y}] | ports[port=80].name
env is a string | env: [{name: A, value: '1'}] | env: [{name: A, value: '1.0'}] | env[name=A].value
env is not a number | env: [{name: A, value: '1'}] | env: [{name: A, value: 1}] | env[name=A].value
amount | resources: {limits: {cpu: '1'}} | resources: {limits: {cpu: '2'}} | resources.limits.cpu
no amount | resources: {claims: [{name: a}]} | resources: {claims: [{name: b}]} | resources.claims[name=a]
another target of an autoscaler | target: {type: Value, value: '1000'} | target: {type: Value, value: 2k} | target.value
not an amount field | image: 1000m | image: '1' | image
an empty emptyDir counts | v: [{name: v, emptyDir: {}}] | v: [{name: v, hostPath: {}}] | v[name=v].emptyDir
absent may mean true | automountServiceAccountToken: false | {} | automountServiceAccountToken
absent may mean any manager | securityContext: {runAsUser: 0} | securityContext: {} | securityContext.runAsUser
zero replicas | spec: {replicas: 0} | spec: {} | spec.replicas
a key more in a selector | spec: {selector: {a: b}} | spec: {selector: {x: y, a: b}} | spec.selector.x
a key more for nodes |
    t: [{spec: {nodeSelector: {a: b}}}] |
    t: [{spec: {nodeSelector: {a: b, x: y}}}] |
    t[0].spec.nodeSelector.x
finalizer | metadata: {finalizers: [own]} | metadata: {finalizers: [theirs]} | metadata.finalizers
owner | metadata: {ownerReferences: [{uid: '1'}]} | metadata: {ownerReferences: [{uid: '2'}]} | metadata.ownerReferences[uid=1]
""")


@pytest.mark.parametrize(("desired", "observed"), COVERED.values(), ids=COVERED)
def test_covered(desired: str, observed: str) -> None:
    assert missing(load(desired), load(observed)) == ""


@pytest.mark.parametrize(("desired", "observed", "path"), MISSING.values(), ids=MISSING)
def test_missing(desired: str, observed: str, path: str) -> None:
    assert missing(load(desired), load(observed)) == path


FOREIGN = table_of("""
a sidecar |
    spec: {containers: [{name: main}]} |
    spec: {containers: [{name: sidecar}, {name: main, image: x}], x: 1} |
    spec: {containers: [{name: main, image: x}], x: 1}
an entry deep inside |
    containers: [{name: main, env: [{name: A}]}] |
    containers: [{name: main, env: [{name: A}, {name: B}], tty: true}] |
    containers: [{name: main, env: [{name: A}], tty: true}]
by position | t: [{key: a}] | t: [{key: a, x: 1}, {key: b}] | t: [{key: a, x: 1}]
plain values | args: [a] | args: [a, b] | args: [a]
all of it | args: [] | args: [a] | args: []
lists that no one asked for stay | a: 1 | {a: 1, b: [1]} | {a: 1, b: [1]}
labels stay | labels: {a: b} | labels: {a: b, x: y} | labels: {a: b, x: y}
keys of selectors | t: [{nodeSelector: {a: b}}] | t: [{nodeSelector: {x: y, a: b}}] | t: [{nodeSelector: {a: b}}]
finalizers stay | metadata: {finalizers: [own]} | metadata: {finalizers: [theirs, own]} | metadata: {finalizers: [theirs, own]}
""")


@pytest.mark.parametrize(("desired", "observed", "result"), FOREIGN.values(), ids=FOREIGN)
def test_drop_foreign(desired: str, observed: str, result: str) -> None:
    there = load(observed)
    assert drop_foreign(load(desired), there) == load(result)
    assert there == load(observed)


names = st.sampled_from(["a", "b", "name", "value", "labels", "args", "resources", "replicas", "mountPath"])
scalars = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "1", "1000m", "x"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(names, values, max_size=5)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value


@given(objects)
def test_everything_covers_itself(obj: Obj) -> None:
    assert missing(obj, obj) == ""
    assert drop_foreign(obj, obj) == obj


@given(objects, objects)
def test_no_value_raises(desired: Obj, observed: Obj) -> None:
    missing(desired, observed)
    drop_foreign(desired, observed)


@given(objects)
def test_nulls_request_nothing(obj: Obj) -> None:
    # In a list, a null is an entry and stays.
    assert missing(obj, without_nulls(obj)) == ""


@given(objects, st.dictionaries(st.sampled_from(["added", "others"]), scalars, max_size=2))
def test_an_object_with_additions_is_covered(obj: Obj, more: Obj) -> None:
    def enlarged(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: enlarged(inner) for key, inner in value.items()}, **more}
        if isinstance(value, list):
            return [enlarged(inner) for inner in value]
        return value

    assert missing(obj, enlarged(obj)) == ""


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("uvwxyz"), unique=True), st.randoms())
def test_foreign_entries_are_dropped_at_any_depth(own: list[str], theirs: list[str], random: Any) -> None:
    desired = {"containers": [{"name": name, "image": name} for name in own]}
    entries = [{"name": name, "image": name, "tty": True} for name in (*own, *theirs)]
    random.shuffle(entries)
    observed = {"containers": entries}
    dropped = drop_foreign(desired, observed)
    assert missing(desired, dropped) == ""
    assert len(dropped["containers"]) == len(own)
    assert bool(missing(desired, observed)) == bool(theirs)

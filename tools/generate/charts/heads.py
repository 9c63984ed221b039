"""What the READMEs of the charts say above their tables of values."""

_MADE = "<!-- Made by `make generate` from values.yaml and tools.generate.charts; change it there. -->"

PLATFORM = f"""# dynamo-platform

{_MADE}

Runs NVIDIA Dynamo inference graphs on Kubernetes: watcher, pod-builder, scaler, model-discovery, profiler, planner and
admission, with NATS and etcd of its own or existing ones.

```console
helm install dynamo-crds helm/dynamo-crds
helm install dynamo-platform helm/dynamo-platform --namespace dynamo-system --create-namespace \\
  --set image.registry=REGISTRY --set plannerImage.registry=REGISTRY
```

[docs/install.md](../../docs/install.md) has the steps, the images to build first, and the choices. What a chart of the Dynamo
operator calls `namespaceRestriction`, `webhook`, `metrics` and `grove` has the same names here.

- A value that the chart does not know is refused, with its place and what is allowed there.
- Nothing is random in a rendering and no object of a cluster is read, so that GitOps tools render what Helm installs. A Job
  creates certificates and passwords where they are missing; it keeps what is there.
- No hook runs at installation, upgrade or removal; `helm test` is the only one.
- Every pod satisfies Pod Security `restricted`. Roles are generated from what the services declare
  (`rights.py`), and `make rights` holds that against an API server's audit log.
"""

DEFINITIONS = f"""# dynamo-crds

{_MADE}

The resource definitions of Dynamo Platform, as an ordinary chart: `helm upgrade` updates them, `helm uninstall` keeps them and
every graph.

```console
helm install dynamo-crds helm/dynamo-crds
```

The admission service of dynamo-platform writes its own address and certificate authority into them when it starts, and keeps
both current; an upgrade of this chart leaves that alone.
"""

"""The text above the tables of values in the charts' READMEs."""

_MADE = "<!-- Made by `make generate` from values.yaml and tools.generate.charts; change it there. -->"

PLATFORM = f"""# dynamo-platform

{_MADE}

Runs NVIDIA Dynamo inference graphs on Kubernetes: watcher, pod-builder, scaler, model-discovery, profiler,
planner and admission, with its own or existing NATS and etcd.

```console
helm install dynamo-crds helm/dynamo-crds
helm install dynamo-platform helm/dynamo-platform --namespace dynamo-system --create-namespace \\
  --set image.registry=REGISTRY --set plannerImage.registry=REGISTRY
```

[docs/install.md](../../docs/install.md) has the steps, the images to build first, and the choices.
`namespaceRestriction`, `webhook`, `metrics` and `grove` have the same names as in the chart of the Dynamo
operator.

- The chart refuses an unknown value, and names its path and the allowed values.
- A rendering has no random values and reads no objects of a cluster, so GitOps tools render the same
  objects that Helm installs. A Job creates missing certificates and passwords, and keeps existing ones.
- No hook runs at installation, upgrade or removal; the only hook is `helm test`.
- Every pod satisfies Pod Security `restricted`. The roles are generated from the services' declarations
  (`rights.py`), and `make rights` compares them with an API server's audit log.
"""

DEFINITIONS = f"""# dynamo-crds

{_MADE}

The resource definitions of Dynamo Platform, as an ordinary chart: `helm upgrade` updates them, and
`helm uninstall` keeps them and every graph.

```console
helm install dynamo-crds helm/dynamo-crds
```

The admission service of dynamo-platform writes its own address and CA into the definitions when it starts,
and keeps both current. An upgrade of this chart does not change them.
"""

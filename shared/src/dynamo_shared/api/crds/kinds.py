"""All kinds of the platform with their versions, and their columns in `kubectl get`."""

from dynamo_shared.api import legacy, resources, v1alpha1, v1beta1
from dynamo_shared.api.crds.definition import Column, Definition, Scale, VersionDefinition


def _condition(column: str, condition: str, description: str, field: str = "status", *, wide: bool = False) -> Column:
    return Column(column, f'.status.conditions[?(@.type=="{condition}")].{field}', description, wide=wide)


def _because_of(condition: str) -> tuple[Column, Column]:
    """Columns that the reference does not have, so only `-o wide` shows them: most users look there before `describe`."""
    return (
        _condition("Reason", condition, f"Reason of the condition {condition}, in one word", "reason", wide=True),
        _condition("Message", condition, f"Message of the condition {condition}", "message", wide=True),
    )


_READY = _condition("Ready", "Ready", "Whether all components are ready")
_STATE = Column("State", ".status.state", "initializing, pending, successful or failed")
_AVAILABLE = _condition("Available", "Available", "Whether the component serves")
_BACKEND = Column("Backend", ".spec.backendFramework", "Inference engine of the workers")
_MODEL = Column("Model", ".spec.model", "Model to serve")
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since creation", type="date")

# These paths have no fields. They make `kubectl scale dgd` a request that reaches admission, which refuses it and names
# the object to scale instead; without the paths the API server would answer that there is no such resource.
_REFUSED_SCALE = Scale(".spec.replicas", ".status.replicas")
GRAPH = Definition(
    ("dgd",),
    (
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"),
            v1alpha1.DynamoGraphDeployment,
            (_READY, _STATE, _BACKEND, _AGE, *_because_of("Ready")),
            storage=False,
            scale=_REFUSED_SCALE,
        ),
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENTS,
            v1beta1.DynamoGraphDeployment,
            (_READY, _STATE, _BACKEND, _AGE, *_because_of("Ready")),
            scale=_REFUSED_SCALE,
        ),
    ),
)
COMPONENT = Definition(
    ("dcd",),
    (
        VersionDefinition(
            resources.DYNAMO_COMPONENT_DEPLOYMENTS.at("v1alpha1"),
            v1alpha1.DynamoComponentDeployment,
            (
                Column("DynamoComponent", ".spec.serviceName", "Name of the component in its graph"),
                _AVAILABLE,
                _BACKEND,
                _AGE,
                *_because_of("Available"),
            ),
            storage=False,
            # The reference does not have this: a component deployment without a graph is scaled like a Deployment.
            scale=Scale(".spec.replicas", ".status.service.replicas"),
        ),
        VersionDefinition(
            resources.DYNAMO_COMPONENT_DEPLOYMENTS,
            v1beta1.DynamoComponentDeployment,
            (_AVAILABLE, _BACKEND, _AGE, *_because_of("Available")),
            scale=Scale(".spec.replicas", ".status.component.replicas"),
        ),
    ),
)

_GRAPH_OF_ADAPTER = Column("DGD", ".spec.dgdRef.name", "Graph of the component")
_REPLICAS = (
    Column("REPLICAS", ".status.replicas", "Existing replicas", type="integer"),
    Column("AGE", ".metadata.creationTimestamp", "Time since creation", type="date"),
    *(
        _condition(condition.upper(), condition, f"Reason of the condition {condition}", "reason", wide=True)
        for condition in ("Synced", "Autoscaling")
    ),
)
_ADAPTER_SCALE = Scale(".spec.replicas", ".status.replicas", ".status.selector")
ADAPTER = Definition(
    ("dgdsa",),
    (
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.at("v1alpha1"),
            v1alpha1.DynamoGraphDeploymentScalingAdapter,
            (_GRAPH_OF_ADAPTER, Column("SERVICE", ".spec.dgdRef.serviceName", "Service of the graph"), *_REPLICAS),
            storage=False,
            scale=_ADAPTER_SCALE,
        ),
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
            v1beta1.DynamoGraphDeploymentScalingAdapter,
            (
                _GRAPH_OF_ADAPTER,
                Column("COMPONENT", ".spec.dgdRef.componentName", "Component of the graph"),
                *_REPLICAS,
            ),
            scale=_ADAPTER_SCALE,
        ),
    ),
)
_SUCCEEDED = '.status.conditions[?(@.type=="Succeeded")]'
REQUEST = Definition(
    ("dgdr",),
    (
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at("v1alpha1"),
            v1alpha1.DynamoGraphDeploymentRequest,
            (
                _MODEL,
                Column("Backend", ".status.backend", "Inference engine"),
                Column("State", ".status.state", "Progress of the request"),
                Column("DGD-State", ".status.deployment.state", "State of the graph"),
                _AGE,
            ),
            storage=False,
        ),
        VersionDefinition(
            resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
            v1beta1.DynamoGraphDeploymentRequest,
            (
                _MODEL,
                Column("Backend", ".spec.backend", "Inference engine"),
                Column("Phase", ".status.phase", "Progress of the request"),
                Column("Profiling", ".status.profilingPhase", "Current step of profiling"),
                Column("Reason", f"{_SUCCEEDED}.reason", "Reason for the phase, in one word"),
                Column("Message", f"{_SUCCEEDED}.message", "Reason for the phase"),
                Column("DGD", ".status.dgdName", "Graph that serves the model"),
                _AGE,
            ),
        ),
    ),
)


def _of_both_versions(short_names: tuple[str, ...], stored: VersionDefinition) -> Definition:
    """A kind with the same fields in both versions. v1alpha1 is stored, because workers and older releases write it."""
    return Definition(short_names, (stored, stored.unchanged_in("v1beta1")))


MODEL = _of_both_versions(
    ("dm", "dmodel"),
    VersionDefinition(
        resources.DYNAMO_MODELS,
        v1alpha1.DynamoModel,
        (
            Column("BaseModel", ".spec.baseModelName", "Base model"),
            Column("Type", ".spec.modelType", "base, lora or adapter"),
            Column("Ready", ".status.readyEndpoints", "Workers that have the model loaded", type="integer"),
            Column("Total", ".status.totalEndpoints", "Workers that serve the base model", type="integer"),
            _AGE,
            *_because_of("EndpointsReady"),
        ),
    ),
)
CHECKPOINT = _of_both_versions(
    ("dckpt",),
    VersionDefinition(
        resources.DYNAMO_CHECKPOINTS,
        v1alpha1.DynamoCheckpoint,
        (
            Column("Model", ".spec.identity.model", "Loaded model"),
            Column("Backend", ".spec.identity.backendFramework", "Inference engine that loaded it"),
            Column("Phase", ".status.phase", "Pending, Creating, Ready or Failed"),
            Column("Hash", ".status.identityHash", "Hash of the identity"),
            _AGE,
        ),
    ),
)
WORKER_METADATA = _of_both_versions(
    ("dwm",), VersionDefinition(resources.DYNAMO_WORKER_METADATAS, v1alpha1.DynamoWorkerMetadata, (_AGE,), status=False)
)
LEGACY = tuple(
    Definition((), (VersionDefinition(resource, model, (*columns, _AGE)),))
    for resource, model, *columns in (
        (
            resources.DYNAMO_DEPLOYMENTS,
            legacy.DynamoDeployment,
            Column("State", ".status.state", "State of the deployment"),
        ),
        (
            resources.DYNAMO_NIM_DEPLOYMENTS,
            legacy.DynamoNimDeployment,
            Column("Service", ".spec.serviceName", "Name of the service"),
        ),
        (
            resources.DYNAMO_NIM_REQUESTS,
            legacy.DynamoNimRequest,
            Column("Tag", ".spec.bentoTag", "Archive from which the image is built"),
            Column("Phase", ".status.phase", "Pending, Building, Ready or Failed"),
            Column("Cached", ".status.cached", "Whether the image already existed", type="boolean"),
        ),
    )
)

DEFINITIONS: tuple[Definition, ...] = (GRAPH, COMPONENT, ADAPTER, REQUEST, MODEL, CHECKPOINT, WORKER_METADATA, *LEGACY)
SERVED: tuple[resources.Resource, ...] = tuple(
    version.resource for definition in DEFINITIONS for version in definition.versions
)
"""Every kind of this platform in every version."""

"""Values that Helm rejects, each with its message."""

from functools import cache
from pathlib import Path

import pytest
import yaml
from dynamo_ctl import settings

from tests.building.tables import table_of
from tests.charts import helm
from tools.generate.charts.values import documented, required

WRONG = table_of("""
watcher.replicas=2 | additional properties 'watcher' not allowed
services.watchr.replicas=2 | at '/services': additional properties 'watchr' not allowed
services.watcher.replica=2 | at '/services/watcher': additional properties 'replica' not allowed
defaults.replicas=-1 | at '/defaults/replicas': minimum: got -1, want 0
defaults.replicas=two | at '/defaults/replicas': got string, want integer
services.scaler.replicas=101 | at '/services/scaler/replicas': maximum: got 101, want 100
services.scaler.enabled=perhaps | at '/services/scaler/enabled': got string, want boolean
defaults.resources.request.cpu=1 | at '/defaults/resources': additional properties 'request' not allowed
defaults.resources.requests.cpu=lots | at '/defaults/resources/requests/cpu': 'lots' does not match pattern
defaults.podDisruptionBudget.min=1 | at '/defaults/podDisruptionBudget': additional properties 'min'
defaults.podDisruptionBudget.minAvailable=half | at '/defaults/podDisruptionBudget/minAvailable': 'half'
defaults.tolerations[0].effect=Never | at '/defaults/tolerations/0/effect': value must be one of
defaults.terminationGracePeriodSeconds=1 | terminationGracePeriodSeconds': minimum: got 1, want 10
defaults.nodeSelector.gpu=true | at '/defaults/nodeSelector/gpu': got boolean, want string
defaults.podLabels.a=no spaces | at '/defaults/podLabels/a': 'no spaces' does not match pattern
defaults.hostUsers=no-thanks | at '/defaults/hostUsers'
defaults.podSpec.containers[0].name=a | at '/defaults/podSpec': additional properties 'containers' not allowed
services.admission.podSpec.dnsPolicy=Cluster | at '/services/admission/podSpec/dnsPolicy': value must be one of
defaults.extraArgs=--debug | at '/defaults/extraArgs': got string, want array
defaults.extraVolumeMounts[0].name=a | at '/defaults/extraVolumeMounts/0': missing property 'mountPath'
services.admission.autoscaling.minReplicas=0 | autoscaling/minReplicas': minimum: got 0, want 1
services.watcher.autoscaling.enabled=true | additional properties 'autoscaling' not allowed
image.pullPolicy=Sometimes | at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'
image.registry=https://r.example | at '/image/registry': 'https://r.example' does not match pattern
global.imageRegistry=r.example/ | at '/global/imageRegistry': 'r.example/' does not match pattern
nats.image.repository=nats:2.12 | at '/nats/image/repository': 'nats:2.12' does not match pattern
image.digest=sha256:12 | at '/image/digest': 'sha256:12' does not match pattern
image.name=platform | at '/image': additional properties 'name' not allowed
global.imagePullSecrets[0]=mirror | at '/global/imagePullSecrets/0': got string, want object
fullnameOverride=Dynamo | at '/fullnameOverride': 'Dynamo' does not match pattern
ipFamilyPolicy=Dual | at '/ipFamilyPolicy': value must be one of
clusterName= | at '/clusterName': minLength: got 0, want 1
namespaces[0]=Team_A | at '/namespaces/0': 'Team_A' does not match pattern
namespaces=team-a | at '/namespaces': got string, want array
namespaceRestriction.namespace=a | at '/namespaceRestriction': additional properties 'namespace' not allowed
webhook.certProvisionMode=self | at '/webhook/certProvisionMode': value must be one of 'auto', 'cert-manager'
webhook.port=443 | at '/webhook/port': minimum: got 443, want 1,024
webhook.enabled=on | at '/webhook/enabled': got string, want boolean
webhook.check.timeoutSeconds=1 | at '/webhook/check/timeoutSeconds': minimum: got 1, want 10
dynadmin.enabled=sometimes | at '/dynadmin/enabled': got string, want boolean
imageBuilder.namespace=A | at '/imageBuilder/namespace': 'A' does not match pattern
imageBuilder.podSecurity=none | at '/imageBuilder/podSecurity': value must be one of 'privileged', 'baseline'
dynadmin.port=80 | at '/dynadmin/port': minimum: got 80, want 1,024
dynadmin.oidc.issuer=login.example.org | at '/dynadmin/oidc/issuer': 'login.example.org' does not match
dynadmin.oidc.clientSecret=x | at '/dynadmin/oidc': additional properties 'clientSecret' not allowed
dynadmin.oidc.redirectUrl=https://a | at '/dynadmin/oidc/redirectUrl': 'https://a' does not match pattern
dynadmin.oidc.scopes[0]=a b | at '/dynadmin/oidc/scopes/0': 'a b' does not match pattern
dynadmin.ingress.host=https://a | at '/dynadmin/ingress/host': 'https://a' does not match pattern
dynadmin.httpRoute.parentRefs[0].namespace=a | at '/dynadmin/httpRoute/parentRefs/0': missing property 'name'
dynadmin.userExtras[0]=Tenant | at '/dynadmin/userExtras/0': 'Tenant' does not match pattern
dynadmin.corsOrigins[0]=* | at '/dynadmin/corsOrigins/0': '*' does not match pattern
standby.mode=sometimes | at '/standby/mode': value must be one of 'auto', 'always', 'never'
standby.duration=2s | at '/standby/duration': '2s' does not match pattern
standby.duration=90s | at '/standby/duration': '90s' does not match pattern
standby.duration=long | at '/standby/duration': 'long' does not match pattern
metrics.podMonitor.interval=often | at '/metrics/podMonitor/interval': 'often' does not match pattern
metrics.podMonitor.endpoint.path=/m | at '/metrics/podMonitor/endpoint': additional properties 'path' not
services.watcher.serviceAccountName=A | at '/services/watcher/serviceAccountName': 'A' does not match pattern
metrics.graphPodMonitor.frontendPath=metrics | frontendPath': 'metrics' does not match pattern
metrics.serviceMonitor.enabled=true | at '/metrics': additional properties 'serviceMonitor' not allowed
metrics.rules.runbookUrl=docs | at '/metrics/rules/runbookUrl': 'docs' does not match pattern
grove.enabled=maybe | at '/grove/enabled': value must be one of 'auto', true, false
nats.mode=external | at '/nats/mode': value must be one of 'own', 'existing'
nats.members=2 | at '/nats/members': value must be one of 1, 3, 5
nats.persistence.size=big | at '/nats/persistence/size': 'big' does not match pattern
nats.users[0]=admin | at '/nats/users/0': value must be one of
nats.maxPayload=1 | at '/nats/maxPayload': minimum: got 1, want 1.048576
nats.existing.credentialSecrets.podBuilder=a | invalid propertyName 'podBuilder'
nats.existing.servers[0]=nats:4222 | at '/nats/existing/servers/0': 'nats:4222' does not match pattern
etcd.mode=off | at '/etcd/mode': value must be one of 'own', 'existing', 'none'
etcd.members=4 | at '/etcd/members': value must be one of 1, 3, 5
etcd.existing.endpoints[0]=etcd:2379 | at '/etcd/existing/endpoints/0': 'etcd:2379' does not match pattern
credentials.mode=vault | at '/credentials/mode': value must be one of 'auto', 'cert-manager', 'given'
credentials.password=secret | at '/credentials': additional properties 'password' not allowed
networkPolicy.webhookFrom[0]=10.0.0.0/28 | at '/networkPolicy/webhookFrom/0': got string, want object
networkPolicy.apiServerPorts[0]=0 | at '/networkPolicy/apiServerPorts/0': minimum: got 0, want 1
rbac.parts.secrets=false | at '/rbac/parts': additional properties 'secrets' not allowed
runAsUser=0 | at '/runAsUser': minimum: got 0, want 1
webhook.issuerRef.kind=ClusterIssuer | at '/webhook/issuerRef': properties 'name' required, if 'kind' exists
tests.image.name=vllm | at '/tests/image': additional properties 'name' not allowed
tests.timeoutSeconds=1 | at '/tests/timeoutSeconds': minimum: got 1, want 10
config.platform.resnyc=5m | at '/config/platform': additional properties 'resnyc' not allowed
config.logging.level=loud | at '/config/logging/level': value must be one of
config.platform.nats.streamReplicas=9 | at '/config/platform/nats/streamReplicas': maximum: got 9, want 5
config.platform.imageBuilder.pod.nodeSelectors.a=b | additional properties 'nodeSelectors' not allowed
config.platform.imageBuilder.pod.tolerations[0].effect=Never | pod/tolerations/0/effect': value must be one of
config.platform.imageBuilder.pod.imagePullSecrets[0]=a | pod/imagePullSecrets/0': got string, want object
config.platform.imageBuilder.proxy.httpProxy=proxy:3128 | proxy/httpProxy': 'proxy:3128' does not match pattern
config.platform.imageBuilder.authorities.key=a/b | authorities/key': 'a/b' does not match pattern
config.platform.resync=soon | at '/config/platform/resync': 'soon' does not match pattern
""")
#: Rules across values, which a schema cannot express.
TOGETHER = table_of("""
etcd.mode=none,standby.mode=never
  | 2 replicas need etcd, or Leases for standby replicas: set etcd.mode to own or existing
dynadmin.enabled=true,webhook.enabled=false,namespaces={a} | dynadmin.enabled must be false if namespaces
kai.enabled=true,webhook.enabled=false,namespaces={a} | kai.enabled must not be true if namespaces are listed
imageBuilder.enabled=true,webhook.enabled=false,namespaces={a}
  | imageBuilder.namespace dynamo-builds must be one of the listed namespaces
dynadmin.oidc.issuer=https://a | dynadmin.oidc.audience is required if dynadmin.oidc.issuer is set
dynadmin.oidc.clientId=a | dynadmin.oidc.issuer is required if dynadmin.oidc.clientId is set
dynadmin.oidc.issuer=https://a,dynadmin.oidc.audience=a,dynadmin.oidc.clientId=a
  | dynadmin.oidc.redirectUrl is required if dynadmin.oidc.clientId is set
dynadmin.port=8080 | dynadmin.port must not be 8080: 8080 is the port of metrics, 8081 is the port of health probes
services.scaler.podSpec.hostNetwork=true | podSpec.hostNetwork of scaler must be false: NetworkPolicies
defaults.podSpec.hostNetwork=true | podSpec.hostNetwork of defaults must be false: NetworkPolicies
webhook.port=8081 | webhook.port must not be 8081: 8080 is the port of metrics, 8081 is the port of health probes
services.admission.autoscaling.minReplicas=8 | autoscaling.minReplicas 8 is more than maxReplicas 6
dynadmin.httpRoute.enabled=true | dynadmin.httpRoute.parentRefs is empty
dynadmin.ingress.enabled=true | dynadmin.ingress.host is empty
namespaces={team-a} | webhook.enabled must be false if namespaces are listed
webhook.enabled=false,namespaces={a},namespaceRestriction.enabled=true | exclude each other
dynadmin.oidc.issuer=https://a,dynadmin.oidc.audience=a,dynadmin.oidc.clientId=a,dynadmin.enabled=true,dynadmin.ingress.enabled=true,dynadmin.ingress.host=*.example.com
  | dynadmin.oidc.redirectUrl is required if dynadmin.oidc.clientId is set
config.server.webhook.port=9555
  | config.server.webhook.port is 9555, but the objects of the chart require 9443: set only webhook.port
config.server.webhook.enabled=false | require true: set only webhook.enabled
config.server.webhook.certProvisionMode=manual | require auto: set only webhook.certProvisionMode
config.server.webhook.serviceName=old | require dynamo-platform-admission: remove it
config.server.metrics.secure=true | require false: set only metrics.secure
config.server.metrics.port=9000 | config.server.metrics.port is 9000
config.server.healthProbe.port=9000 | require 8081: remove it
config.platform.admission.namespace=a | require default: remove it
config.platform.admission.servicePort=9443 | require 443: remove it
nats.members=1,config.platform.nats.streamReplicas=3 | is 3, but nats.members is 1: remove it
config.platform.standby.namespace=a | require default: remove it
config.leaderElection.namespace=a | require default: remove it
config.server.healthProbe.bindAddress=127.0.0.1
  | config.server.healthProbe.bindAddress is 127.0.0.1, which nothing outside the pod reaches: remove it
config.server.webhook.host=localhost | config.server.webhook.host is localhost
metrics.enabled=true,config.server.metrics.bindAddress=::1 | config.server.metrics.bindAddress is ::1
etcd.mode=none,clusterName=Prod_EU | clusterName is Prod_EU, but without etcd it is part of the names of Leases
config.platform.dynadmin.port=9000 | require 8082: set only dynadmin.port
config.platform.imageBuilder.namespace=a | require dynamo-builds: set only imageBuilder.namespace
config.platform.kubernetes.namespaces={a} | require []: set only namespaces
config.namespace.restricted=a | require the whole cluster: set only namespaces
config.platform.nats.servers={nats://n:4222} | require its own: set only nats.mode and nats.existing.servers
config.platform.etcd.endpoints={https://e} | require its own: set only etcd.mode and etcd.existing.endpoints
etcd.mode=none,config.platform.etcd.endpoints={https://e} | require none: set only etcd.mode and
config.platform.replicas=1 | require several: set only defaults.replicas
config.platform.replicaId=me | require all replicas: remove it
defaults.serviceAccountName=all | defaults.serviceAccountName must be empty: each service has its own rights
config.platform.clusterName=east | set only clusterName, which also determines the rights of NATS users
etcd.mode=none,config.platform.standby.mode=never
  | config.platform.standby.mode is never, but standby.mode is auto, which determines how replicas roll out
config.orchestrators.kaiScheduler.enabled=true,webhook.enabled=false,namespaces={a}
  | config.orchestrators.kaiScheduler.enabled must not be true if namespaces are listed
config.gpu.discoveryEnabled=true,rbac.parts.nodes=false
  | config.gpu.discoveryEnabled must not be true if rbac.parts.nodes is false
imageBuilder.enabled=true,imageBuilder.namespace=default
  | imageBuilder.namespace is default, which exists: set another one
commands=null | commands is null: remove it from your values, or set it
services.scaler=null | services.scaler is null
networkPolicy.dnsPorts=null | networkPolicy.dnsPorts is null
webhook.enabled=null | omitted it, because it is new: use --reset-then-reuse-values
tests.image.tag=null | tests.image.tag is null
nats.persistence.size=5Gi | nats.persistence.size is 5Gi, but NATS needs more than 5Gi
nats.mode=existing | nats.existing.servers is empty
nats.mode=existing,nats.existing.servers={tls://n},nats.existing.credentialSecrets.watcher=w
  | nats.existing.credentialSecrets has no Secret for model-discovery: add it, or add the key default
etcd.mode=existing | etcd.existing.endpoints is empty
etcd.persistence.enabled=false | etcd.persistence.enabled must be true with three members
""")


def test_there_are_at_least_forty_rows() -> None:
    assert len(WRONG) >= 40


@cache
def refusal(*settings: str) -> str:
    """Helm's error for values that it must reject."""
    outcome = helm.run(
        "template", helm.RELEASE, helm.PLATFORM, *(part for each in settings for part in ("--set", each))
    )
    assert outcome.returncode != 0
    return outcome.stderr


def batches() -> list[dict[str, str]]:
    """Rows of WRONG, one group a Helm call, because Helm reports all schema errors at once.

    In a group, no setting is within another, and no message matches that of another.
    """
    results: list[dict[str, str]] = []
    for setting, (message,) in WRONG.items():
        place = setting.partition("=")[0]
        for batch in results:
            others = [each.partition("=")[0] for each in batch]
            apart = not any(place.startswith(other) or other.startswith(place) for other in others)
            if apart and not any(message in other or other in message for other in batch.values()):
                batch[setting] = message
                break
        else:
            results.append({setting: message})
    return results


BATCH_OF = {setting: tuple(batch) for batch in batches() for setting in batch}


@pytest.mark.parametrize(("setting", "said"), WRONG.items(), ids=WRONG)
def test_a_wrong_value_is_rejected_with_its_path_and_the_allowed_values(setting: str, said: tuple[str]) -> None:
    # Several unknown names in one place give a single message: such a row has a call of its own.
    assert said[0] in refusal(*BATCH_OF[setting]) or said[0] in refusal(setting)


@pytest.mark.parametrize(("setting", "said"), TOGETHER.items(), ids=TOGETHER)
def test_conflicting_values_are_rejected(setting: str, said: tuple[str]) -> None:
    assert said[0] in refusal(setting)


@pytest.mark.parametrize("release", ["10101", "a.b"])
def test_a_release_name_that_no_service_can_have_is_rejected(release: str) -> None:
    """Only the newest versions of Kubernetes allow a Service name that begins with a digit."""
    outcome = helm.run("template", release, helm.PLATFORM)
    assert (
        f"{release}-dynamo-platform, from the name of the release, cannot be the start of a Service name"
        in outcome.stderr
    )


@pytest.mark.parametrize(("length", "refused"), [(40, False), (41, True)])
def test_a_release_name_that_is_too_long_for_object_names_is_rejected(length: int, refused: bool) -> None:
    """Two releases whose names shared the first 40 characters had the same objects."""
    release = f"a-dynamo-platform-{'b' * (length - 18)}"
    outcome = helm.run("template", release, helm.PLATFORM)
    assert ("which another release may share: set fullnameOverride" in outcome.stderr) is refused
    assert (outcome.returncode != 0) is refused
    helm.template("--set", f"fullnameOverride={release[:40]}", release=release)


def test_valid_values_are_accepted() -> None:
    """Durations of Prometheus, toleration operators of Kubernetes 1.35 and newer, quantities with an exponent."""
    right = (
        "metrics.podMonitor.interval=1m30s,defaults.tolerations[0].operator=Gt,defaults.resources.requests.cpu=5e-1",
        "imageBuilder.enabled=true,imageBuilder.namespace=default,imageBuilder.createNamespace=false",
        "defaults.podAnnotations=null,nats.podAnnotations=null,global.imageRegistry=localhost:5000/ai/team-a",
        "dynadmin.oidc.jwksUri=https://a/keys?p=b2c,clusterName=Prod_EU",
        "image.repository=r.example:5000/team/dynamo__platform,tests.image.registry=10.0.0.5:443",
    )
    helm.template(*(part for each in right for part in ("--set", each)), namespace="default")


def test_null_is_accepted_in_place_of_what_is_empty_by_default(tmp_path: Path) -> None:
    """Values files often have a key whose value is commented out: `commonLabels:` failed with a nil pointer."""
    text = (helm.PLATFORM / "values.yaml").read_text(encoding="utf-8")
    given = {
        **{f"{part}.enabled": "true" for part in ("dynadmin", "dynadmin.httpRoute", "metrics.podMonitor")},
        **{f"{part}.enabled": "true" for part in ("metrics.rules", "metrics.dashboards")},
        "dynadmin.httpRoute.parentRefs[0].name": "public",
        "dynadmin.oidc.issuer": "https://a",
        "dynadmin.oidc.audience": "a",
    }
    optional = {".".join(value.path) for value in documented(text)} - set(yaml.safe_load(required(text)))
    given |= dict.fromkeys(optional - given.keys() - {"dynadmin.httpRoute.parentRefs"}, "null")
    objects = helm.objects(*(part for each, value in given.items() for part in ("--set", f"{each}={value}")))
    file = tmp_path / "config.yaml"
    file.write_text(helm.one(objects, "ConfigMap", "config")["data"]["config.yaml"])
    settings.load(file)
    assert len(optional) > 80


def test_settings_that_agree_with_the_values_are_accepted() -> None:
    """An operator configuration that is moved here has them all."""
    same = "server.webhook.port=9443,config.server.metrics.port=8080,config.server.healthProbe.port=8081"
    helm.template("--set", f"config.{same},config.server.metrics.secure=false")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("keep=null", "missing property 'keep'"),
        ("conversion.enabled=null", "at '/conversion': missing property 'enabled'"),
        ("conversion.port=0", "at '/conversion/port': minimum: got 0, want 1"),
        ("keeep=true", "additional properties 'keeep' not allowed"),
        ("conversion.serviceName=A_b", "at '/conversion/serviceName': 'A_b' does not match pattern"),
    ],
)
def test_the_definitions_chart_rejects_wrong_values(setting: str, message: str) -> None:
    outcome = helm.run("template", "dynamo-crds", helm.CRDS, "--set", setting)
    assert outcome.returncode != 0
    assert message in outcome.stderr


@pytest.mark.parametrize("setting", ["enabled=true", "global.anything.else=1"])
def test_parent_charts_may_pass_enabled_and_global_values(setting: str) -> None:
    helm.template("--set", setting)
    helm.template("--set", f"{setting},commonLabels=null,commonAnnotations=null", chart=helm.CRDS)

{{/* Names. */}}
{{- define "dynamo.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select pods never change; the others say more. Argument: dict "root" $ "component" NAME. */}}
{{- define "dynamo.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* All labels of an object: those that commands and NetworkPolicies select by win. Arguments: root, component; labels is optional. */}}
{{- define "dynamo.labels" -}}
{{ include "dynamo.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: dynamo-platform
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- $own := list "name" "instance" "component" "version" "managed-by" "part-of" }}
{{- $more := omit (merge dict (default dict .labels) (default dict .root.Values.commonLabels)) "helm.sh/chart" }}
{{- range $own }}
{{- $more = omit $more (printf "app.kubernetes.io/%s" .) }}
{{- end }}
{{- with $more }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object. Arguments: root, component, name; namespace, annotations, cluster are optional. */}}
{{- define "dynamo.metadata" -}}
name: {{ .name | quote }}
{{- if not .cluster }}
namespace: {{ default .root.Release.Namespace .namespace | quote }}
{{- end }}
labels:
  {{- include "dynamo.labels" . | nindent 2 }}
{{- with include "dynamo.annotations" . }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* All annotations of an object or a pod; empty: none. Arguments: root; annotations is optional. */}}
{{- define "dynamo.annotations" -}}
{{- with merge (deepCopy (default dict .annotations)) (default dict .root.Values.commonAnnotations) -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* An image's reference. Arguments: root, image. */}}
{{- define "dynamo.image" -}}
{{- $registry := default .image.registry .root.Values.global.imageRegistry -}}
{{- $name := .image.repository -}}
{{- if $registry -}}
{{- $name = printf "%s/%s" $registry (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $name "") -}}
{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "dynamo.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A line of a Service's spec, where the values have it. */}}
{{- define "dynamo.families" }}
{{- with .Values.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* Namespaces that are served, as a JSON list; empty for the whole cluster. */}}
{{- define "dynamo.namespaces" -}}
{{- if .Values.namespaces -}}
{{- .Values.namespaces | uniq | sortAlpha | toJson -}}
{{- else if .Values.namespaceRestriction.enabled -}}
{{- list (default .Release.Namespace .Values.namespaceRestriction.targetNamespace) | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* Keys of the values and the services that they mean: those that run, as a JSON object. */}}
{{- define "dynamo.services" -}}
{{- $names := dict "watcher" "watcher" "podBuilder" "pod-builder" "scaler" "scaler" "modelDiscovery" "model-discovery" "profiler" "profiler" "planner" "planner" "admission" "admission" "dynadmin" "dynadmin" "imageBuilder" "image-builder" -}}
{{- $switches := dict "admission" $.Values.webhook.enabled "dynadmin" $.Values.dynadmin.enabled "imageBuilder" $.Values.imageBuilder.enabled -}}
{{- $running := dict -}}
{{- range $key, $name := $names -}}
{{- if ternary (get $switches $key) (index $.Values.services $key).enabled (hasKey $switches $key) -}}
{{- $_ := set $running $key $name -}}
{{- end -}}
{{- end -}}
{{- $running | toJson -}}
{{- end -}}

{{/* Name of a service's ClusterRole. Arguments: root, service. */}}
{{- define "dynamo.clusterRole" -}}
{{- printf "%s-%s-%s" .root.Release.Namespace (include "dynamo.fullname" .root) .service -}}
{{- end -}}

{{/* The values of one service, its own over those of all. Arguments: root, key. */}}
{{- define "dynamo.service" -}}
{{- mergeOverwrite (deepCopy .root.Values.defaults) (deepCopy (index .root.Values.services .key)) | toJson -}}
{{- end -}}

{{/* ServiceAccount of a service. Arguments: root, key, name. */}}
{{- define "dynamo.account" -}}
{{- default (printf "%s-%s" (include "dynamo.fullname" .root) .name) (index .root.Values.services .key).serviceAccountName -}}
{{- end -}}

{{/* The image of `helm test`: values of older releases have a text. */}}
{{- define "dynamo.testImage" -}}
{{- if kindIs "string" .Values.tests.image -}}
{{- .Values.tests.image -}}
{{- else -}}
{{- include "dynamo.image" (dict "root" . "image" .Values.tests.image) -}}
{{- end -}}
{{- end -}}

{{/* Fields of a pod's spec that the values may add. Argument: the values of a service, or of all. */}}
{{- define "dynamo.podFields" }}
{{- if not (kindIs "invalid" .hostUsers) }}
hostUsers: {{ .hostUsers }}
{{- end }}
{{- with .podSpec }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What restricted Pod Security asks of a pod and of a container. Argument of the first: the root. */}}
{{- define "dynamo.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "dynamo.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/*
Metadata and spec of a pod that runs one command of the platform, and ends. Arguments: root, component, restartPolicy, arguments; volume,
which is mounted at /etc/dynamo, is optional.
*/}}
{{- define "dynamo.command" -}}
metadata:
  labels:
    {{- include "dynamo.labels" (merge (dict "labels" .root.Values.defaults.podLabels) .) | nindent 4 }}
  {{- with include "dynamo.annotations" (dict "root" .root "annotations" .root.Values.defaults.podAnnotations) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "dynamo.commandPod" . | nindent 2 }}
{{- end -}}

{{- define "dynamo.commandPod" -}}
{{- $values := .root.Values -}}
restartPolicy: {{ .restartPolicy }}
serviceAccountName: {{ include "dynamo.fullname" .root }}-{{ .component }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- include "dynamo.podFields" $values.defaults }}
{{- with $values.defaults.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- include "dynamo.pullSecrets" .root }}
securityContext:
  {{- include "dynamo.podSecurity" .root | nindent 2 }}
{{- with $values.defaults.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.defaults.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- /* Affinity to other pods concerns the replicas of a service. */}}
{{- with (default dict $values.defaults.affinity).nodeAffinity }}
affinity:
  nodeAffinity:
    {{- toYaml . | nindent 4 }}
{{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "dynamo.image" (dict "root" .root "image" $values.image) }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args:
      {{- toYaml .arguments | nindent 6 }}
    resources:
      {{- toYaml $values.commands.resources | nindent 6 }}
    securityContext:
      {{- include "dynamo.containerSecurity" . | nindent 6 }}
    {{- with .volume }}
    volumeMounts:
      - {name: {{ .name }}, mountPath: /etc/dynamo, readOnly: true}
    {{- end }}
{{- with .volume }}
volumes:
  - {{ toYaml . | nindent 4 | trim }}
{{- end }}
{{- end -}}

{{/*
GOMEMLIMIT of a server in Go: nine tenths of its memory limit, in bytes. Its garbage collector works harder near that, where it
would let memory grow to twice of what is in use, and the kernel would end it. Nothing without a limit. Arguments: resources.
*/}}
{{- define "dynamo.goMemoryLimit" -}}
{{- with dig "limits" "memory" "" (default dict .resources) }}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $quantity := ternary . (. | int64 | toString) (kindIs "string" .) }}
{{- $number := regexFind "^[0-9.]+" $quantity }}
{{- $unit := trimPrefix $number $quantity }}
{{- if hasKey $units $unit -}}
- name: GOMEMLIMIT
  value: {{ mulf (float64 $number) (get $units $unit) 0.9 | int64 | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Replicas on different nodes and in different zones, as far as possible. Arguments: root, component. */}}
{{- define "dynamo.spread" -}}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "dynamo.selector" $ | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "dynamo.antiAffinity" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "dynamo.selector" . | nindent 12 }}
{{- end -}}

{{/* Addresses of members, by their own names: a certificate is valid for them. Arguments: root, part, members, scheme, port. */}}
{{- define "dynamo.members" -}}
{{- $addresses := list -}}
{{- $name := printf "%s-%s" (include "dynamo.fullname" .root) .part -}}
{{- range $index := until (int .members) -}}
{{- $addresses = append $addresses (printf "%s://%s-%d.%s-members.%s.svc:%d" $.scheme $name $index $name $.root.Release.Namespace (int $.port)) -}}
{{- end -}}
{{- $addresses | toJson -}}
{{- end -}}

{{/*
DNS names that a server's certificate is valid for: of as many members as there may be. NATS reads it once, and a new member would
start with one that lacks its name. Arguments: root, part.
*/}}
{{- define "dynamo.serverNames" -}}
{{- $name := printf "%s-%s" (include "dynamo.fullname" .root) .part -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $names := list (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) $name "localhost" "127.0.0.1" -}}
{{- range $index := until 5 -}}
{{- $member := printf "%s-%d.%s-members.%s.svc" $name $index $name $namespace -}}
{{- $names = concat $names (list $member (printf "%s.cluster.local" $member)) -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* Port of a URL, which may lack its scheme. Arguments: url, default. */}}
{{- define "dynamo.port" -}}
{{- default .default (regexFind "^([a-z]+://)?[^/?]+" .url | regexFind ":[0-9]+$" | trimPrefix ":") -}}
{{- end -}}

{{/* Secret of a service's NATS user; empty: it uses none. Arguments: root, service. */}}
{{- define "dynamo.natsSecret" -}}
{{- if eq .service "admission" -}}
{{- else if eq .root.Values.nats.mode "existing" -}}
{{- $secrets := .root.Values.nats.existing.credentialSecrets -}}
{{- default (get $secrets "default") (get $secrets .service) -}}
{{- else -}}
{{- printf "%s-%s-nats" (include "dynamo.fullname" .root) .service -}}
{{- end -}}
{{- end -}}

{{/* Whether a PodMonitor has graphs scraped; empty: none. As in the chart of the Dynamo operator, that is where it can be created. */}}
{{- define "dynamo.scrapesGraphs" -}}
{{- $enabled := .Values.metrics.graphPodMonitor.enabled -}}
{{- if or (eq (toString $enabled) "true") (and (eq (toString $enabled) "auto") (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/PodMonitor")) -}}
yes
{{- end -}}
{{- end -}}

{{/* Users of the release's own NATS, as a JSON list: the services, and those of the values. */}}
{{- define "dynamo.natsUsers" -}}
{{- concat (values (omit (include "dynamo.services" . | fromJson) "admission")) .Values.nats.users | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* Secret with the users of NATS. */}}
{{- define "dynamo.natsAuthorization" -}}
{{- printf "%s-nats-authorization" (include "dynamo.fullname" .) -}}
{{- end -}}

{{/* Its entry that servers read. Other users, other passwords, or another release, which may change what users may do, make another
one: servers read it when they start, and wait for it to exist. A Secret that is given has one. */}}
{{- define "dynamo.natsAuthorizationEntry" -}}
{{- if eq .Values.credentials.mode "given" -}}
authorization.conf
{{- else -}}
{{- $users := include "dynamo.natsUsers" . -}}
{{- $release := .Values.image.digest | default .Values.image.tag | default .Chart.AppVersion -}}
{{- list $release $users .Values.clusterName .Values.credentials.rotation | toJson | sha256sum | trunc 8 | printf "%s.conf" -}}
{{- end -}}
{{- end -}}

{{/* Secret with the key of dynadmin's sessions: entry `key`. */}}
{{- define "dynamo.sessionSecret" -}}
{{- default (printf "%s-dynadmin-session" (include "dynamo.fullname" .)) .Values.dynadmin.sessionSecret -}}
{{- end -}}

{{/* Where browsers come back to from the issuer; empty where none is named: one with `*` does not count. */}}
{{- define "dynamo.redirectUrl" -}}
{{- $hosts := list -}}
{{- if .Values.dynadmin.ingress.enabled -}}
{{- $hosts = append $hosts .Values.dynadmin.ingress.host -}}
{{- end -}}
{{- if .Values.dynadmin.httpRoute.enabled -}}
{{- $hosts = concat $hosts (default list .Values.dynadmin.httpRoute.hostnames) -}}
{{- end -}}
{{- $url := .Values.dynadmin.oidc.redirectUrl -}}
{{- range $hosts -}}
{{- if not (or $url (hasPrefix "*" .)) -}}
{{- $url = printf "https://%s/api/v1/session/callback" . -}}
{{- end -}}
{{- end -}}
{{- $url -}}
{{- end -}}

{{/* Secret by which NATS is verified: entry ca.crt. */}}
{{- define "dynamo.natsAuthority" -}}
{{- if eq .Values.nats.mode "existing" -}}
{{- .Values.nats.existing.caSecret -}}
{{- else -}}
{{- printf "%s-nats-server" (include "dynamo.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* Secret with a client's certificate for etcd, and ca.crt; empty: none. Arguments: root, service. */}}
{{- define "dynamo.etcdSecret" -}}
{{- if eq .service "admission" -}}
{{- else if eq .root.Values.etcd.mode "own" -}}
{{- printf "%s-%s-etcd" (include "dynamo.fullname" .root) .service -}}
{{- else if eq .root.Values.etcd.mode "existing" -}}
{{- .root.Values.etcd.existing.tlsSecret -}}
{{- end -}}
{{- end -}}

{{- define "dynamo.webhookSecret" -}}
{{- dig "server" "webhook" "secretName" "" .Values.config | default .Values.webhook.secretName | default (printf "%s-webhook" (include "dynamo.fullname" .)) -}}
{{- end -}}

{{/* Combinations of values that a schema cannot refuse. */}}
{{- define "dynamo.check" -}}
{{- range .Files.Get "files/required-values.yaml" | fromYamlArray -}}
{{- $value := $.Values -}}
{{- range splitList "." . -}}
{{- /* A text may replace the section tests.image. */ -}}
{{- if kindIs "map" $value -}}{{- $value = index $value . -}}{{- end -}}
{{- end -}}
{{- if kindIs "invalid" $value -}}
{{- fail (printf "%s is null: remove it from your values, or set it. If they do not have it, helm upgrade --reuse-values omitted it, because it is new: use --reset-then-reuse-values" .) -}}
{{- end -}}
{{- end -}}
{{- $namespaces := include "dynamo.namespaces" . | fromJsonArray -}}
{{- if and .Values.namespaces .Values.namespaceRestriction.enabled -}}
{{- fail "namespaces and namespaceRestriction.enabled exclude each other: list all namespaces in namespaces" -}}
{{- end -}}
{{- if and $namespaces .Values.webhook.enabled -}}
{{- fail "webhook.enabled must be false if namespaces are listed: webhooks are cluster-wide. A cluster-wide platform may serve the webhooks; without one, install dynamo-crds with conversion.enabled=false" -}}
{{- end -}}
{{- $fullname := include "dynamo.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $fullname) -}}
{{- fail (printf "%s, from the name of the release, cannot be the start of a Service name, which starts with a letter and has no dot: set fullnameOverride" $fullname) -}}
{{- end -}}
{{- if and (gt (len .Release.Name) 40) (not .Values.fullnameOverride) -}}
{{- fail (printf "the name of the release has %d characters, but object names use only the first 40, which another release may share: set fullnameOverride (to %s, if this release is already installed with that name)" (len .Release.Name) $fullname) -}}
{{- end -}}
{{- /* Settings by which the chart's objects are made, each with the value of the chart that says the same. */ -}}
{{- range list
  (list "server.webhook.enabled" true "webhook.enabled")
  (list "server.webhook.port" .Values.webhook.port "webhook.port")
  (list "server.webhook.certProvisionMode" .Values.webhook.certProvisionMode "webhook.certProvisionMode")
  (list "server.webhook.serviceName" (printf "%s-admission" $fullname) "")
  (list "server.metrics.secure" .Values.metrics.secure "metrics.secure")
  (list "server.metrics.port" 8080 "")
  (list "server.healthProbe.port" 8081 "")
  (list "platform.admission.namespace" .Release.Namespace "")
  (list "platform.admission.servicePort" 443 "")
  (list "platform.standby.namespace" .Release.Namespace "")
  (list "leaderElection.namespace" .Release.Namespace "")
  (list "platform.dynadmin.port" .Values.dynadmin.port "dynadmin.port")
  (list "platform.imageBuilder.namespace" .Values.imageBuilder.namespace "imageBuilder.namespace")
  (list "platform.kubernetes.namespaces" $namespaces "namespaces")
  (list "namespace.restricted" (join "," $namespaces | default "the whole cluster") "namespaces")
  (list "platform.nats.servers" (ternary "its own" .Values.nats.existing.servers (eq .Values.nats.mode "own")) "nats.mode and nats.existing.servers")
  (list "platform.etcd.endpoints" (ternary .Values.etcd.existing.endpoints (ternary "its own" "none" (eq .Values.etcd.mode "own")) (eq .Values.etcd.mode "existing")) "etcd.mode and etcd.existing.endpoints")
  (list "platform.replicas" "several" "defaults.replicas")
  (list "platform.replicaId" "all replicas" "")
-}}
{{- $given := $.Values.config -}}
{{- range splitList "." (first .) -}}
{{- $given = get (ternary $given dict (kindIs "map" $given)) . -}}
{{- end -}}
{{- if not (has (toString $given) (list "" (toString (index . 1)))) -}}
{{- $instead := ternary "remove it" (printf "set only %s" (index . 2)) (empty (index . 2)) -}}
{{- fail (printf "config.%s is %v, but the objects of the chart require %v: %s" (first .) $given (index . 1) $instead) -}}
{{- end -}}
{{- end -}}
{{- range $server, $address := dict "webhook" "host" "metrics" "bindAddress" "healthProbe" "bindAddress" -}}
{{- $given := dig "server" $server $address "" $.Values.config | toString -}}
{{- if and (regexMatch "^(127[.].*|::1|localhost)$" $given) (or (ne $server "metrics") $.Values.metrics.enabled) -}}
{{- fail (printf "config.server.%s.%s is %s, which nothing outside the pod reaches: remove it" $server $address $given) -}}
{{- end -}}
{{- end -}}
{{- $cluster := dig "platform" "clusterName" .Values.clusterName .Values.config -}}
{{- if and (ne $cluster .Values.clusterName) (eq .Values.nats.mode "own") -}}
{{- fail (printf "config.platform.clusterName is %s, but clusterName is %s: set only clusterName, which also determines the rights of NATS users" $cluster .Values.clusterName) -}}
{{- end -}}
{{- range $key, $name := include "dynamo.services" . | fromJson -}}
{{- $service := include "dynamo.service" (dict "root" $ "key" $key) | fromJson -}}
{{- $alone := and (eq $.Values.etcd.mode "none") (eq $.Values.standby.mode "never") -}}
{{- if and (gt (int $service.replicas) 1) $alone (not (has $key (list "admission" "dynadmin"))) -}}
{{- fail (printf "services.%s: %d replicas need etcd, or Leases for standby replicas: set etcd.mode to own or existing, standby.mode to auto, or replicas to 1" $key (int $service.replicas)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.defaults.serviceAccountName -}}
{{- fail "defaults.serviceAccountName must be empty: each service has its own rights. Set services.NAME.serviceAccountName" -}}
{{- end -}}
{{- range $where, $values := merge (dict "defaults" .Values.defaults) (omit .Values.services "admission") -}}
{{- if dig "podSpec" "hostNetwork" false $values -}}
{{- fail (printf "podSpec.hostNetwork of %s must be false: NetworkPolicies do not apply to pods of the host network, and its ports would conflict. Only services.admission.podSpec may set it to true" $where) -}}
{{- end -}}
{{- end -}}
{{- range $name, $port := dict "webhook.port" .Values.webhook.port "dynadmin.port" .Values.dynadmin.port -}}
{{- if has (int $port) (list 8080 8081) -}}
{{- fail (printf "%s must not be %d: 8080 is the port of metrics, 8081 is the port of health probes" $name (int $port)) -}}
{{- end -}}
{{- end -}}
{{- $scaling := .Values.services.admission.autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "services.admission.autoscaling.minReplicas %d is more than maxReplicas %d" (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- if and $namespaces (eq (toString .Values.kai.enabled) "true") -}}
{{- fail "kai.enabled must not be true if namespaces are listed: the queues of KAI Scheduler are cluster-scoped" -}}
{{- end -}}
{{- if and $namespaces (eq "true" (dig "orchestrators" "kaiScheduler" "enabled" "" .Values.config | toString)) -}}
{{- fail "config.orchestrators.kaiScheduler.enabled must not be true if namespaces are listed: the queues of KAI Scheduler are cluster-scoped" -}}
{{- end -}}
{{- if and .Values.rbac.create (not .Values.rbac.parts.nodes) (eq "true" (dig "gpu" "discoveryEnabled" "" .Values.config | toString)) -}}
{{- fail "config.gpu.discoveryEnabled must not be true if rbac.parts.nodes is false: the watcher may not read nodes" -}}
{{- end -}}
{{- $standby := dig "platform" "standby" "mode" .Values.standby.mode .Values.config -}}
{{- if and (eq .Values.etcd.mode "none") (eq $standby "never") (ne .Values.standby.mode "never") -}}
{{- fail (printf "config.platform.standby.mode is never, but standby.mode is %s, which determines how replicas roll out: set only standby.mode" .Values.standby.mode) -}}
{{- end -}}
{{- $elected := and (eq .Values.etcd.mode "none") (ne $standby "never") (not (dig "leaderElection" "enabled" false .Values.config)) -}}
{{- if and $elected (not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $cluster)) -}}
{{- fail (printf "clusterName is %s, but without etcd it is part of the names of Leases: use lower-case letters, digits, - and ." $cluster) -}}
{{- end -}}
{{- if and $namespaces .Values.dynadmin.enabled -}}
{{- fail "dynadmin.enabled must be false if namespaces are listed: dynadmin needs rights on the whole cluster to identify its callers" -}}
{{- end -}}
{{- if and $namespaces .Values.imageBuilder.enabled (not (has .Values.imageBuilder.namespace $namespaces)) -}}
{{- fail (printf "imageBuilder.namespace %s must be one of the listed namespaces: the watcher reads Jobs only in them" .Values.imageBuilder.namespace) -}}
{{- end -}}
{{- if and .Values.imageBuilder.enabled .Values.imageBuilder.createNamespace (eq .Values.imageBuilder.namespace .Release.Namespace) -}}
{{- fail (printf "imageBuilder.namespace is %s, which exists: set another one, or set imageBuilder.createNamespace to false, because a namespace that the chart creates is deleted with the release" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.dynadmin.oidc.issuer (not .Values.dynadmin.oidc.audience) -}}
{{- fail "dynadmin.oidc.audience is required if dynadmin.oidc.issuer is set: dynadmin must refuse tokens for other programs" -}}
{{- end -}}
{{- if and .Values.dynadmin.oidc.clientId (not .Values.dynadmin.oidc.issuer) -}}
{{- fail "dynadmin.oidc.issuer is required if dynadmin.oidc.clientId is set: users log in at the issuer" -}}
{{- end -}}
{{- if and .Values.dynadmin.oidc.clientId (not (include "dynamo.redirectUrl" .)) -}}
{{- fail "dynadmin.oidc.redirectUrl is required if dynadmin.oidc.clientId is set and neither Ingress nor HTTPRoute has a host" -}}
{{- end -}}
{{- if and .Values.dynadmin.httpRoute.enabled (not .Values.dynadmin.httpRoute.parentRefs) -}}
{{- fail "dynadmin.httpRoute.parentRefs is empty: set the gateways of the route" -}}
{{- end -}}
{{- if and .Values.dynadmin.ingress.enabled (not .Values.dynadmin.ingress.host) -}}
{{- fail "dynadmin.ingress.host is empty: set the host that browsers and programs call" -}}
{{- end -}}
{{- if and (eq .Values.nats.mode "existing") (not .Values.nats.existing.servers) -}}
{{- fail "nats.existing.servers is empty: set the servers, or set nats.mode to own" -}}
{{- end -}}
{{- if and (eq .Values.nats.mode "existing") .Values.nats.existing.credentialSecrets -}}
{{- range $key, $name := omit (include "dynamo.services" . | fromJson) "admission" -}}
{{- if not (include "dynamo.natsSecret" (dict "root" $ "service" $name)) -}}
{{- fail (printf "nats.existing.credentialSecrets has no Secret for %s: add it, or add the key default" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $copies := dig "platform" "nats" "streamReplicas" 1 .Values.config | int -}}
{{- if and (eq .Values.nats.mode "own") (gt $copies (int .Values.nats.members)) -}}
{{- fail (printf "config.platform.nats.streamReplicas is %d, but nats.members is %d: remove it" $copies (int .Values.nats.members)) -}}
{{- end -}}
{{- /* NATS reserves what a stream may take, and creates none that does not fit into max_file_store. */ -}}
{{- $size := .Values.nats.persistence.size -}}
{{- $bytes := mul (regexFind "^[0-9]+" $size | int64) (get (dict "Mi" 1000000 "Gi" 1000000000 "Ti" 1000000000000) (regexFind "..$" $size)) -}}
{{- if and (eq .Values.nats.mode "own") (lt $bytes 5368709120) -}}
{{- fail (printf "nats.persistence.size is %s, but NATS needs more than 5Gi for the streams of events and of failed commands: set 6Gi or more" $size) -}}
{{- end -}}
{{- if and (eq .Values.etcd.mode "existing") (not .Values.etcd.existing.endpoints) -}}
{{- fail "etcd.existing.endpoints is empty: set the servers, or set etcd.mode to own or none" -}}
{{- end -}}
{{- if and (eq .Values.etcd.mode "own") (gt (int .Values.etcd.members) 1) (not .Values.etcd.persistence.enabled) -}}
{{- fail "etcd.persistence.enabled must be true with three members: a member that lost its data cannot rejoin" -}}
{{- end -}}
{{- end -}}

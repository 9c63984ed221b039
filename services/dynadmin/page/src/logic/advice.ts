// What to do about a condition that does not hold, by its reason. Pure.

const ADVICE: Record<string, string> = {
  ImagePullBackOff: "The image cannot be pulled. Check its name and tag, and name a pull secret of this namespace.",
  ErrImagePull: "The image cannot be pulled. Check its name and tag, and name a pull secret of this namespace.",
  InvalidImageName: "Correct the name of the image.",
  Unschedulable: "No node has room. Free GPUs, ask for fewer, add nodes, or correct node selector and tolerations.",
  CrashLoopBackOff: "The container ends again and again. Its log says why; wrong arguments and missing model files are common.",
  OOMKilled: "The container needs more memory. Raise it, or lower the batch size and the context length.",
  StartupProbe: "The engine is still loading, or hangs. Watch its log; large models take many minutes.",
  ReadinessProbe: "The engine runs and does not answer. Watch its log.",
  CreateContainerConfigError: "A Secret or ConfigMap that the container names is missing. Create it in this namespace.",
  FailedMount: "A volume cannot be mounted. Check that the PersistentVolumeClaim exists and is bound.",
  some_resources_are_not_ready: "Nothing to do yet: components are starting. Their rows below show the progress.",
  rolling_update_in_progress: "Nothing to do: new pods replace the old ones, and requests are answered meanwhile.",
  PlannerOwnsReplicas: "A planner sets the replicas. Change its limits, or take the component from it.",
  NameTaken: "Another object has this name. Delete it, or choose another name.",
  InvalidSpec: "Correct the field that the message names.",
  ProfilingFailed: "Correct what the message names, then delete the request and create it again.",
  failed_to_reconcile_the_resources: "Correct what the message names. The platform tries again by itself.",
  ProgressDeadlineExceeded: "Pods did not come up in time. Their rows below and their logs say why.",
  ClusterTopologyNotFound: "Create the ClusterTopology, or name one that exists.",
  VolumeNotMounted: "A volume cannot be mounted. Check that the PersistentVolumeClaim exists and is bound.",
  NoFeasibleConfig: "No deployment keeps the times on these GPUs. Allow more time, more GPUs, or another kind of GPU.",
};

const BY_WORDS: [RegExp, string][] = [
  [/image|pull/i, ADVICE.ImagePullBackOff!],
  [/insufficient|unschedulable|scheduled|no node/i, ADVICE.Unschedulable!],
  [/secret|configmap/i, ADVICE.CreateContainerConfigError!],
  [/volume|claim|mount/i, ADVICE.FailedMount!],
  [/quota/i, "The namespace's quota is used up. Delete something, or have the quota raised."],
  [/webhook|admission|denied/i, "A rule of the cluster refuses this. Correct the field that the message names."],
];

/** What a person can do; empty where the condition holds. */
export function advice(status: string, reason: string, message: string): string {
  if (status === "True") return "";
  const known = ADVICE[reason];
  if (known) return known;
  if (status === "Unknown") return "Wait: the platform has no answer yet.";
  const entry = BY_WORDS.find(([pattern]) => pattern.test(`${reason} ${message}`));
  return entry ? entry[1] : "The events below have the steps that led here.";
}

const SENTENCES: Record<string, [holds: string, not: string]> = {
  Ready: ["It is ready to serve.", "It is not ready."],
  Available: ["All replicas that it needs are available.", "Too few replicas are available."],
  Succeeded: ["It is done.", "It is not done yet."],
  Validation: ["Its fields are valid.", "A field is not valid."],
  Profiling: ["Profiling is done.", "Profiling has no result yet."],
  SpecGenerated: ["A graph meets the request.", "There is no graph for the request yet."],
  DeploymentReady: ["The graph that it deployed is ready.", "The graph is not ready yet."],
  EndpointsReady: ["All endpoints serve the model.", "Some endpoints do not serve the model."],
  ServicesFound: ["Endpoints serve the base model.", "No endpoint serves the base model."],
  Scaled: ["The component has the replicas that were asked for.", "The component does not have these replicas yet."],
  TopologyLevelsAvailable: ["The topology has the levels that it names.", "The topology lacks a level."],
};

/** A condition as a sentence. */
export function sentence(type: string, status: string): string {
  const known = SENTENCES[type];
  if (known) return status === "True" ? known[0] : status === "False" ? known[1] : `${type} is not known yet.`;
  const words = type.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return status === "True" ? `It holds: ${words}.` : status === "False" ? `It does not hold: ${words}.` : `Not known yet: ${words}.`;
}

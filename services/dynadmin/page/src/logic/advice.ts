// Conditions in words: whether the state is correct, and what to do if it is not. Pure.
import type { Any } from "../api/client.ts";
import { spaced } from "./format.ts";

/** By reason. Empty if the condition's message already says what to do. */
const ADVICE: Record<string, string> = {
  ImagePullBackOff: "The image cannot be pulled. Check its name and tag, and set a pull secret of this namespace.",
  ErrImagePull: "The image cannot be pulled. Check its name and tag, and set a pull secret of this namespace.",
  ErrImageNeverPull: "The node does not have the image, and imagePullPolicy forbids pulling it.",
  InvalidImageName: "Correct the name of the image.",
  Unschedulable: "No node fits the pod. Free GPUs, request fewer, add nodes, or correct node selector and tolerations.",
  CrashLoopBackOff: "The container keeps crashing. Its log shows the reason; wrong arguments and missing model files are common.",
  ContainerCrashed: "The container ended. Its log shows the reason; wrong arguments and missing model files are common.",
  InitContainerFailed: "An init container ended with an error. Its log shows the reason.",
  OOMKilled: "The container needs more memory. Raise it, or lower the batch size and the context length.",
  PodFailed: "The node ended the pod. The events show the reason; a new pod replaces it when a node has capacity.",
  NodeLost: "",
  QuotaExceeded: "Raise the quota of the namespace, or set the resource that it counts. Kubernetes retries.",
  WebhookUnavailable: "Restart the pods of the webhook that the message names, or remove its configuration. The platform retries.",
  WebhookRefused: "Correct the graph, or the webhook that the message names.",
  PodSecurityRefused: "Correct the pod template, or the Pod Security level of the namespace.",
  ServiceAccountMissing: "Create the ServiceAccount that the message names.",
  FailedCreate: "Correct what the message names.",
  PodNotStarted: "Check that a scheduler runs, and that the pod's volumes and devices exist. The events name them.",
  NotDeployable: "Correct what the message names.",
  ReconcileFailed: "The platform retries. If the error persists, report it with the log that the message names.",
  RefusedByApiServer: "Correct what the message names, or request the missing right. The platform retries.",
  PredecessorRemains: "Nothing to do yet: the old object with this name is being deleted.",
  StartupProbeFailing: "The engine is still loading, or hangs. Watch its log; large models take many minutes.",
  ReadinessProbeFailing: "The engine runs but does not answer. Watch its log.",
  CreateContainerConfigError: "A Secret or ConfigMap that the container names is missing. Create it in this namespace.",
  VolumeNotMounted: "A volume cannot be mounted. Check that the PersistentVolumeClaim exists and is bound.",
  some_resources_are_not_ready: "Nothing to do yet: components are starting. Their rows below show the progress.",
  rolling_update_in_progress: "Nothing to do: new pods replace the old ones while the graph keeps serving.",
  failed_to_reconcile_the_resources: "Correct what the message names. The platform retries.",
  ProgressDeadlineExceeded: "Pods did not become ready in time. Their rows below and their logs show the reason.",
  TopologyDefinitionNotFound: "Create the ClusterTopologyBinding (ClusterTopology in older Grove releases), or name an existing one.",
  NameTaken: "Another object has this name. Delete it, or choose another name.",
  InvalidSpec: "Correct the field that the message names.",
  ObjectiveNotMet: "Allow more time, more GPUs, or another kind of GPU.",
  GenerationFailed: "Correct what the message names, then delete the request and create it again.",
  OutputMissing: "The log of the profiling Job shows the reason. Correct it, then delete the request and create it again.",
  JobDeleted: "",
  BudgetExceeded: "",
  HardwareUnknown: "",
  InvalidGraph: "",
  InvalidObjective: "",
  InvalidWorkload: "",
  ModelDoesNotFit: "",
  NoCandidates: "",
  SimulationFailed: "",
  NoPlannerConfig: "Create that ConfigMap with a PlannerConfig, or remove the annotation.",
  InvalidPlannerConfig: "Correct the fields of the planner's ConfigMap that the message names.",
  InputMissing: "The planner changes no replicas until it has its input. Check that Prometheus scrapes the frontend.",
  ScalerRefused: "The scaler has its own limits, such as a GPU quota. The planner retries.",
  ScalerUnanswered: "Check that the scaler runs. The planner retries.",
  PromiseAtRisk: "Give the planner more GPUs, or set longer target times.",
  GraphChanged: "Remove the number from the manifest that another tool writes, or remove the scaling adapter.",
  SeveralWriters: "",
  TwoPlanners: "",
  GpusUnknown: "",
  PowerUnknown: "",
  SharedGpus: "",
  InvalidOverride: "",
  NotEstimated: "",
  NoEndpoints: "Deploy a graph whose workers have the base model as modelRef.name, or wait until its workers are ready.",
  NoServicesFound: "",
  NotReady: "Correct what the message names. The platform retries.",
  GraphNotFound: "Create the graph, or delete this adapter.",
  ComponentNotFound: "Correct the component's name, or delete this adapter.",
  NotOwner: "",
  UpdateFailed: "Correct what the message names. The platform retries.",
};

/** What to do about a reason; empty if it is unknown, or if its message says so. */
export function adviceOn(reason: string): string {
  return ADVICE[reason] ?? "";
}

/** Reasons of objects that are not ready, but need no action. */
const PASSING = new Set(["some_resources_are_not_ready", "rolling_update_in_progress", "PredecessorRemains", "NotReady", "InputMissing"]);

/** Whether a condition requires an action of the user. A graph that is not ready may have any reason of a pod, such as Evicted; its own reasons are in lower case. */
export function isTrouble({ type, reason = "" }: Any): boolean {
  return (reason in ADVICE || (type === "Ready" && /^[A-Z]/.test(reason))) && !PASSING.has(reason);
}

const BY_WORDS: [RegExp, string][] = [
  [/image|pull/i, ADVICE.ImagePullBackOff!],
  [/insufficient|unschedulable|scheduled|no node/i, ADVICE.Unschedulable!],
  [/secret|configmap/i, ADVICE.CreateContainerConfigError!],
  [/volume|claim|mount/i, ADVICE.VolumeNotMounted!],
  [/quota/i, "The namespace's quota is used up. Delete objects, or ask an administrator to raise the quota."],
  [/webhook|admission|denied/i, "A rule of the cluster refuses this. Correct the field that the message names."],
  [/^(Profiling|Deploying|Initializing|Sweeping\w+|SelectingConfig|BuildingCurves|GeneratingDGD) /, "Nothing to do yet: the request continues by itself."],
];

const SENTENCES: Record<string, [holds: string, not: string]> = {
  Ready: ["It is ready to serve.", "It is not ready."],
  Succeeded: ["It is done.", "It is not done yet."],
  Validation: ["Its fields are valid.", "A field is not valid."],
  Profiling: ["Profiling is done.", "Profiling has no result yet."],
  SpecGenerated: ["A graph was generated.", "There is no graph for the request yet."],
  ObjectiveMet: ["The graph meets the objective.", "No graph meets the objective; this one is the closest."],
  DeploymentReady: ["The graph of the request is ready.", "The graph of the request is not ready yet."],
  EndpointsReady: ["All workers serve the model.", "Workers are missing, or do not serve the model."],
  ServicesFound: ["Endpoints serve the base model.", "No endpoint serves the base model."],
  Synced: ["The graph has the adapter's number of replicas.", "The graph does not have the adapter's number of replicas."],
  Conflict: ["A second writer also sets the replicas.", "No second writer of the replicas was observed."],
  Autoscaling: ["An autoscaler sets the replicas.", "The autoscaler does not scale."],
  Planning: ["A planner sets the replicas.", "The planner cannot set the replicas."],
  PlannerInformed: ["The graph's own planner knows which workers serve.", "The graph's own planner cannot learn which workers serve."],
  TopologyLevelsAvailable: ["The topology has the required levels.", "The topology lacks a level."],
};

/** Conditions that should be False. */
const TROUBLES = new Set(["Conflict"]);
/** Reasons of conditions that are True but still require an action. */
const AT_RISK = new Set(["PromiseAtRisk"]);

export interface Judged {
  tone: "good" | "busy" | "bad" | "idle";
  sentence: string;
  /** The condition's own message, if a user needs it. */
  message: string;
  advice: string;
  /** Type and reason, for a search in the documentation. */
  name: string;
}

/** A condition as the page shows it. */
export function judged({ type, status, reason = "", message = "" }: Any): Judged {
  if (isRemark(type, status, reason)) return { tone: "idle", sentence: `To consider: ${spaced(type)}.`, message, advice: "", name: type };
  const isGood = (status === "True") !== TROUBLES.has(type) && status !== "Unknown" && !AT_RISK.has(reason);
  return {
    tone: status === "Unknown" ? "idle" : isGood ? "good" : isTrouble({ type, reason }) || /fail|error|invalid/i.test(reason) ? "bad" : "busy",
    sentence: sentence(type, status),
    message: isGood ? "" : message,
    advice: isGood ? "" : advice(status, reason, message),
    name: [...new Set([type, reason])].filter(Boolean).join(", "),
  };
}

/** Whether the condition is a remark of profiling on a result: its type equals its reason. */
function isRemark(type: string, status: string, reason: string): boolean {
  return type === reason && status === "True" && !(type in SENTENCES);
}

/** Conditions without remarks that another condition repeats. */
export function onceEach(all: Any[]): Any[] {
  return all.filter((each) => !isRemark(each.type, each.status, each.reason) || !all.some((other) => other !== each && (other.reason === each.reason || other.message === each.message)));
}

function advice(status: string, reason: string, message: string): string {
  const known = ADVICE[reason];
  if (known !== undefined) return known;
  if (status === "Unknown") return "Wait: the platform has not determined this condition yet.";
  const entry = BY_WORDS.find(([pattern]) => pattern.test(`${reason} ${message}`));
  return entry ? entry[1] : "The events show the steps that led to this state.";
}

function sentence(type: string, status: string): string {
  const known = SENTENCES[type];
  const words = spaced(type);
  if (known && status !== "Unknown") return known[status === "True" ? 0 : 1];
  return status === "True" ? `True: ${words}.` : status === "False" ? `False: ${words}.` : `Not known yet: ${words}.`;
}

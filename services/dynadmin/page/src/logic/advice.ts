// Conditions in words: whether it is as it should be, and what to do where it is not. Pure.
import type { Any } from "../api/client.ts";
import { spaced } from "./format.ts";

/** By reason. Empty where the condition's message already says what to do. */
const ADVICE: Record<string, string> = {
  ImagePullBackOff: "The image cannot be pulled. Check its name and tag, and name a pull secret of this namespace.",
  ErrImagePull: "The image cannot be pulled. Check its name and tag, and name a pull secret of this namespace.",
  InvalidImageName: "Correct the name of the image.",
  Unschedulable: "No node has room. Free GPUs, ask for fewer, add nodes, or correct node selector and tolerations.",
  CrashLoopBackOff: "The container ends again and again. Its log says why; wrong arguments and missing model files are common.",
  ContainerCrashed: "The container ended. Its log says why; wrong arguments and missing model files are common.",
  InitContainerFailed: "An init container ended with an error. Its log says why.",
  OOMKilled: "The container needs more memory. Raise it, or lower the batch size and the context length.",
  PodFailed: "Its node ended the pod. The events say why; another pod takes its place where the node has room.",
  PodNotStarted: "Check that a scheduler runs, and that volumes and devices of the pod are there. The events name them.",
  NotDeployable: "Correct what the message names.",
  ReconcileFailed: "The platform tries again by itself. Where it stays so, report it with the log that the message names.",
  RefusedByApiServer: "Correct what the message names, or ask for the right that is missing. The platform tries again by itself.",
  PredecessorRemains: "Nothing to do yet: what has this name is being deleted.",
  StartupProbeFailing: "The engine is still loading, or hangs. Watch its log; large models take many minutes.",
  ReadinessProbeFailing: "The engine runs and does not answer. Watch its log.",
  CreateContainerConfigError: "A Secret or ConfigMap that the container names is missing. Create it in this namespace.",
  VolumeNotMounted: "A volume cannot be mounted. Check that the PersistentVolumeClaim exists and is bound.",
  some_resources_are_not_ready: "Nothing to do yet: components are starting. Their rows below show the progress.",
  rolling_update_in_progress: "Nothing to do: new pods replace the old ones, and requests are answered meanwhile.",
  failed_to_reconcile_the_resources: "Correct what the message names. The platform tries again by itself.",
  ProgressDeadlineExceeded: "Pods did not come up in time. Their rows below and their logs say why.",
  TopologyDefinitionNotFound: "Create the ClusterTopologyBinding (ClusterTopology of an older Grove), or name one that exists.",
  NameTaken: "Another object has this name. Delete it, or choose another name.",
  InvalidSpec: "Correct the field that the message names.",
  ObjectiveNotMet: "Allow more time, more GPUs, or another kind of GPU.",
  GenerationFailed: "Correct what the message names, then delete the request and create it again.",
  NoPlannerConfig: "Create that ConfigMap with a PlannerConfig, or remove the annotation.",
  InvalidPlannerConfig: "Correct the ConfigMap of the planner where the message says.",
  InputMissing: "Replicas stay as they are until the input is there. Check that Prometheus scrapes the frontend.",
  ScalerRefused: "The scaler has limits of its own, such as a quota of GPUs. The planner asks again.",
  ScalerUnanswered: "Check that the scaler runs. The planner asks again.",
  PromiseAtRisk: "Allow the planner more GPUs, or promise longer times.",
  GraphChanged: "Leave the number out where it is written by another tool, or remove the scaling adapter.",
  SeveralWriters: "",
  TwoPlanners: "",
  GpusUnknown: "",
  PowerUnknown: "",
  SharedGpus: "",
  InvalidOverride: "",
  NotEstimated: "",
  NoEndpoints: "Deploy a graph whose workers have the base model as modelRef.name, or wait until its workers are ready.",
  NotReady: "Correct what the message names. The platform tries again by itself.",
  GraphNotFound: "Create the graph, or delete this adapter.",
  ComponentNotFound: "Correct the component's name, or delete this adapter.",
  NotOwner: "",
  UpdateFailed: "Correct what the message names. The platform tries again by itself.",
};

/** Reasons of what is not ready, and that pass by themselves. */
const PASSING = new Set(["some_resources_are_not_ready", "rolling_update_in_progress", "PredecessorRemains", "NotReady", "InputMissing"]);

/** Whether someone has to do something about a condition of this reason. */
export function isTrouble(reason: string): boolean {
  return reason in ADVICE && !PASSING.has(reason);
}

const BY_WORDS: [RegExp, string][] = [
  [/image|pull/i, ADVICE.ImagePullBackOff!],
  [/insufficient|unschedulable|scheduled|no node/i, ADVICE.Unschedulable!],
  [/secret|configmap/i, ADVICE.CreateContainerConfigError!],
  [/volume|claim|mount/i, ADVICE.VolumeNotMounted!],
  [/quota/i, "The namespace's quota is used up. Delete something, or have the quota raised."],
  [/webhook|admission|denied/i, "A rule of the cluster refuses this. Correct the field that the message names."],
];

const SENTENCES: Record<string, [holds: string, not: string]> = {
  Ready: ["It is ready to serve.", "It is not ready."],
  Succeeded: ["It is done.", "It is not done yet."],
  Validation: ["Its fields are valid.", "A field is not valid."],
  Profiling: ["Profiling is done.", "Profiling has no result yet."],
  SpecGenerated: ["A graph was generated.", "There is no graph for the request yet."],
  ObjectiveMet: ["The graph keeps the objective.", "No graph keeps the objective; this one is the closest."],
  DeploymentReady: ["The graph that it deployed is ready.", "The graph is not ready yet."],
  EndpointsReady: ["All endpoints serve the model.", "Some endpoints do not serve the model."],
  ServicesFound: ["Endpoints serve the base model.", "No endpoint serves the base model."],
  Synced: ["The graph has the adapter's number of replicas.", "The graph does not have the adapter's number of replicas."],
  Conflict: ["Another one sets the replicas, too.", "No second writer of the replicas was observed."],
  Autoscaling: ["An autoscaler sets the replicas.", "The autoscaler does not scale."],
  Planning: ["A planner sets the replicas.", "The planner cannot set the replicas."],
  PlannerInformed: ["Its own planner knows which workers serve.", "Its own planner cannot learn which workers serve."],
  TopologyLevelsAvailable: ["The topology has the levels that it names.", "The topology lacks a level."],
};

/** Conditions that are as they should be where they are False. */
const TROUBLES = new Set(["Conflict"]);
/** Reasons of conditions that are True, and still ask for something to be done. */
const AT_RISK = new Set(["PromiseAtRisk"]);

export interface Judged {
  tone: "good" | "busy" | "bad" | "idle";
  sentence: string;
  /** The condition's own message, where a person needs it. */
  message: string;
  advice: string;
  /** Type and reason, for a search in the documentation. */
  name: string;
}

/** A condition as a page shows it. */
export function judged({ type, status, reason = "", message = "" }: Any): Judged {
  if (isRemark(type, status, reason)) return { tone: "idle", sentence: `To consider: ${spaced(type)}.`, message, advice: "", name: type };
  const isGood = (status === "True") !== TROUBLES.has(type) && status !== "Unknown" && !AT_RISK.has(reason);
  return {
    tone: status === "Unknown" ? "idle" : isGood ? "good" : isTrouble(reason) || /fail|error|invalid/i.test(reason) ? "bad" : "busy",
    sentence: sentence(type, status),
    message: isGood ? "" : message,
    advice: isGood ? "" : advice(status, reason, message),
    name: [...new Set([type, reason])].filter(Boolean).join(", "),
  };
}

/** What profiling has to say about a result: a condition whose type is its reason. */
function isRemark(type: string, status: string, reason: string): boolean {
  return type === reason && status === "True" && !(type in SENTENCES);
}

/** Conditions without remarks that another condition has in other words. */
export function onceEach(all: Any[]): Any[] {
  return all.filter((each) => !isRemark(each.type, each.status, each.reason) || !all.some((other) => other !== each && (other.reason === each.reason || other.message === each.message)));
}

function advice(status: string, reason: string, message: string): string {
  const known = ADVICE[reason];
  if (known !== undefined) return known;
  if (status === "Unknown") return "Wait: the platform has no answer yet.";
  const entry = BY_WORDS.find(([pattern]) => pattern.test(`${reason} ${message}`));
  return entry ? entry[1] : "The events have the steps that led here.";
}

function sentence(type: string, status: string): string {
  const known = SENTENCES[type];
  const words = spaced(type);
  if (known && status !== "Unknown") return known[status === "True" ? 0 : 1];
  return status === "True" ? `It holds: ${words}.` : status === "False" ? `It does not hold: ${words}.` : `Not known yet: ${words}.`;
}

// Conditions in words: whether it is as it should be, and what to do where it is not. Pure.
import type { Any } from "../api/client.ts";

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
  StartupProbeFailing: "The engine is still loading, or hangs. Watch its log; large models take many minutes.",
  ReadinessProbeFailing: "The engine runs and does not answer. Watch its log.",
  CreateContainerConfigError: "A Secret or ConfigMap that the container names is missing. Create it in this namespace.",
  VolumeNotMounted: "A volume cannot be mounted. Check that the PersistentVolumeClaim exists and is bound.",
  some_resources_are_not_ready: "Nothing to do yet: components are starting. Their rows below show the progress.",
  rolling_update_in_progress: "Nothing to do: new pods replace the old ones, and requests are answered meanwhile.",
  failed_to_reconcile_the_resources: "Correct what the message names. The platform tries again by itself.",
  ProgressDeadlineExceeded: "Pods did not come up in time. Their rows below and their logs say why.",
  TopologyDefinitionNotFound: "Create the ClusterTopology, or name one that exists.",
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
  SharedGpus: "",
  InvalidOverride: "",
  NotEstimated: "",
  NoEndpoints: "",
};

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
  Synced: ["The component has the replicas that were asked for.", "The component does not have these replicas yet."],
  Conflict: ["Another one sets the replicas, too.", "Only the adapter sets the replicas."],
  Autoscaling: ["An autoscaler sets the replicas.", "The autoscaler does not scale."],
  Planning: ["A planner sets the replicas.", "The planner cannot set the replicas."],
  TopologyLevelsAvailable: ["The topology has the levels that it names.", "The topology lacks a level."],
};

/** Conditions that are as they should be where they are False. */
const TROUBLES = new Set(["Conflict"]);
/** Reasons of conditions that are True, and still ask for something to be done. */
const AT_RISK = new Set(["PromiseAtRisk"]);

export interface Judged {
  tone: "good" | "busy" | "idle";
  sentence: string;
  /** The condition's own message, where a person needs it. */
  message: string;
  advice: string;
  /** Type and reason, for a search in the documentation. */
  name: string;
}

/** A condition as a page shows it. */
export function judged({ type, status, reason = "", message = "" }: Any): Judged {
  const isGood = (status === "True") !== TROUBLES.has(type) && status !== "Unknown" && !AT_RISK.has(reason);
  return {
    tone: status === "Unknown" ? "idle" : isGood ? "good" : "busy",
    sentence: sentence(type, status),
    message: isGood ? "" : message,
    advice: isGood ? "" : advice(status, reason, message),
    name: [...new Set([type, reason])].filter(Boolean).join(", "),
  };
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
  if (known) return status === "True" ? known[0] : status === "False" ? known[1] : `${type} is not known yet.`;
  const words = type.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return status === "True" ? `It holds: ${words}.` : status === "False" ? `It does not hold: ${words}.` : `Not known yet: ${words}.`;
}

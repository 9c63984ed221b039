// Titles of the kinds, and the columns of their lists. Pure.
import type { Any, KubeObject } from "../api/client.ts";
import { safe, type Kind } from "./route.ts";
import { isTrouble } from "./advice.ts";
import { count, spaced } from "./format.ts";

export type Tone = "good" | "busy" | "bad" | "idle";
export interface State {
  text: string;
  tone: Tone;
  why: string;
}

export interface Column {
  title: string;
  value: (object: KubeObject) => string;
  number?: boolean;
  /** What a list shows instead of a long value; a filter uses the value. */
  shown?: (object: KubeObject) => string;
  /** Class of the cells. */
  style?: "model" | "text";
  /** The value is the name of an object of this kind. */
  leadsTo?: Kind;
}

export interface Described {
  title: string;
  one: string;
  about: string;
  /** How an object of this kind is created. */
  origin: string;
  columns: Column[];
}

const spec = (object: KubeObject): Any => object.spec ?? {};
const status = (object: KubeObject): Any => object.status ?? {};

export const KINDS: Record<Kind, Described> = {
  deployments: {
    title: "Graphs",
    one: "graph",
    about: "Models that are served: frontends and workers, and how they share the work.",
    origin: "A graph is deployed by hand, or by a request.",
    columns: [
      { title: "Model", value: modelOf, style: "model" },
      { title: "Engine", value: (each) => spec(each).backendFramework ?? "" },
      { title: "Components", value: (each) => namesOf(each).join(", "), shown: (each) => firstOf(namesOf(each)) },
      { title: "Ready", value: (each) => readyOf(each), number: true },
      { title: "GPUs", value: gpuWords, number: true },
    ],
  },
  requests: {
    title: "Requests",
    one: "request",
    about: "Objectives. Profiling selects a graph that meets them.",
    origin: "A request names a model and the times that users should get.",
    columns: [
      { title: "Model", value: (each) => spec(each).model ?? "", style: "model" },
      { title: "Engine", value: (each) => spec(each).backend ?? "auto" },
      { title: "Objective", value: objectiveOf },
      { title: "GPUs", value: (each) => String(spec(each).hardware?.totalGpus ?? ""), number: true },
      { title: "Graph", value: deployedBy, leadsTo: "deployments" },
    ],
  },
  models: {
    title: "Models",
    one: "model",
    about: "LoRA adapters and base models that running graphs serve under their own names.",
    origin: "A DynamoModel names a base model, and where its LoRA adapter is: kubectl apply creates one.",
    columns: [
      { title: "Model", value: (each) => spec(each).modelName ?? "", style: "model" },
      { title: "Base", value: (each) => spec(each).baseModelName ?? "", style: "model" },
      { title: "Type", value: (each) => spec(each).modelType ?? "base" },
      { title: "Source", value: (each) => spec(each).source?.uri ?? "", style: "text" },
      {
        title: "Ready",
        value: (each) => `${status(each).readyEndpoints ?? 0}/${status(each).totalEndpoints ?? 0}`,
        number: true,
      },
    ],
  },
  adapters: {
    title: "Scaling adapters",
    one: "scaling adapter",
    about: "The single owner of a component's replicas: users, HPA, KEDA and planners write to it.",
    origin: "A graph creates one for each component with scalingAdapter.",
    columns: [
      { title: "Graph", value: (each) => spec(each).dgdRef?.name ?? "", leadsTo: "deployments" },
      { title: "Component", value: (each) => spec(each).dgdRef?.componentName ?? spec(each).dgdRef?.serviceName ?? "" },
      { title: "Desired", value: (each) => String(spec(each).replicas ?? ""), number: true },
      { title: "Running", value: (each) => String(status(each).replicas ?? ""), number: true },
    ],
  },
};

const namesOf = (graph: KubeObject): string[] => componentsOf(graph).map((each) => each.name);

/** The first names, and the number of the others. */
export function firstOf(names: string[]): string {
  const rest = names.length - 3;
  return rest > 1 ? `${names.slice(0, 3).join(", ")} and ${rest} more` : names.join(", ");
}

/** Components of a graph, each with its status. */
export function componentsOf(graph: KubeObject): Any[] {
  const reported = status(graph).components ?? status(graph).services ?? {};
  return (spec(graph).components ?? []).map((each: Any) => {
    const component = reported[each.name] ?? reported[String(each.name).toLowerCase()] ?? {};
    return { ...each, desired: each.replicas ?? 1, ready: component.readyReplicas ?? 0, status: component };
  });
}

/** Replicas of a component that run together or not at all (only with Grove). */
export function togetherOf(component: Any): number {
  const isOfGrove = ["PodClique", "PodCliqueScalingGroup"].includes(component.status.componentKind);
  const inWordsOfGrove = component.providerOverride?.value;
  const least = component.minAvailable ?? inWordsOfGrove?.minAvailable ?? inWordsOfGrove?.spec?.minAvailable;
  return isOfGrove ? (least ?? 1) : 1;
}

function readyOf(graph: KubeObject): string {
  const all = componentsOf(graph);
  const sum = (name: string): number => all.reduce((total, each) => total + Number(each[name] ?? 0), 0);
  return `${sum("ready")}/${sum("desired")}`;
}

/** Total GPUs of all replicas of a graph. */
export function gpusOf(graph: KubeObject): number {
  return (spec(graph).components ?? []).reduce((total: number, each: Any) => {
    const one = podsOf(each).reduce((sum, [pod, count]) => sum + count * gpusOfPod(pod), 0);
    return total + one * (each.replicas ?? 1);
  }, 0);
}

/** Specs of the pods of one replica, each with its number: a leader and its workers may have their own templates. */
function podsOf(component: Any): [Any, number][] {
  const own = (role: string): Any => (component.roles ?? []).find((each: Any) => each.name === role)?.podTemplate;
  const leader = own("leader") ?? component.podTemplate;
  const workers = own("worker") ?? component.podTemplate;
  // As in the platform, a multi-node replica without a number has two nodes.
  const nodes = component.multinode ? (component.multinode.nodeCount ?? 2) : 1;
  return [[leader?.spec ?? {}, 1], [workers?.spec ?? {}, nodes - 1]];
}

function gpusOfPod(pod: Any): number {
  return (pod.containers ?? []).reduce((sum: number, container: Any) => sum + gpusOfContainer(container), 0);
}

/** As in the platform: NVIDIA's resource before others whose name is a GPU's, and requests before limits. */
function gpusOfContainer({ resources }: Any): number {
  const amounts: Any[] = [resources?.requests ?? {}, resources?.limits ?? {}];
  for (const isIt of [(name: string) => name === "nvidia.com/gpu", (name: string) => /^gpu$|\/gpu|^mig-|\/mig-/.test(name)])
    for (const amount of amounts)
      for (const name of Object.keys(amount)) if (isIt(name) && Number(amount[name]) > 0) return Number(amount[name]);
  return 0;
}

/** GPUs as text; the graph does not have the devices of ResourceClaims. */
export function gpuWords(graph: KubeObject): string {
  const gpus = gpusOf(graph);
  const claims = (spec(graph).components ?? []).some((each: Any) => podsOf(each).some(([pod]) => pod.resourceClaims?.length));
  if (!claims) return String(gpus || "");
  return gpus ? `${gpus} + claims` : "by claims";
}

/** The graph that a request has deployed; a request also names the graph before it is deployed. */
export function deployedBy(request: KubeObject): string {
  const { phase = "", dgdName = "", conditions = [] } = status(request);
  const isThere = phase === "Deploying" || phase === "Deployed" || conditions.some((each: Any) => each.type === "DeploymentReady");
  return isThere ? safe(dgdName) : "";
}

/** The model that a graph serves, from its components or from the engine's arguments. */
export function modelOf(graph: KubeObject): string {
  for (const each of spec(graph).components ?? []) {
    if (each.modelRef?.name) return each.modelRef.name;
    const container = (podsOf(each)[0]?.[0].containers ?? []).find((one: Any) => one.name === "main");
    const words = [...(container?.command ?? []), ...(container?.args ?? [])];
    const at = words.findIndex((word: string) => word === "--model" || word === "--model-path");
    if (at >= 0 && words[at + 1]) return words[at + 1];
  }
  return "";
}

export function objectiveOf(request: KubeObject): string {
  const sla = spec(request).sla ?? {};
  const times = [
    sla.ttft && `TTFT ${sla.ttft} ms`,
    sla.itl && `ITL ${sla.itl} ms`,
    sla.e2eLatency && `${sla.e2eLatency} ms in all`,
  ].filter(Boolean);
  return times.join(", ") || (sla.optimizationType ? `best ${sla.optimizationType}` : "as good as it gets");
}

/** Planned GPUs of a request, GPUs of the cluster, and their source: titles and texts. */
export function hardwareOf(request: KubeObject): [title: string, text: string][] {
  const { planned, "found": observed, source } = status(request).hardware ?? {};
  const lines: [string, string][] = [];
  if (planned)
    lines.push([
      "Planned for",
      [planned.gpuSku, planned.totalGpus && `${count(planned.totalGpus, "GPU")} at most`, planned.numGpusPerNode && `${planned.numGpusPerNode} on a node`, planned.vramMb && `${planned.vramMb} MiB each`].filter(Boolean).join(", "),
    ]);
  for (const each of observed ?? [])
    lines.push(["On the cluster", [each.gpuSku ?? "unknown GPUs", each.totalGpus && count(each.totalGpus, "GPU"), each.nodes && `on ${count(each.nodes, "node")}`].filter(Boolean).join(", ")]);
  if (source) lines.push(["Read from", SOURCES[source] ?? source]);
  return lines;
}

const SOURCES: Record<string, string> = {
  spec: "the request",
  dcgm: "the DCGM exporter",
  nodeLabels: "labels of nodes",
  resourceSlices: "ResourceSlices",
};

const GOOD = new Set(["successful", "Deployed", "Ready"]);
const BAD = new Set(["failed", "Failed"]);

/** State of an object, and why it is not ready. */
export function stateOf(kind: Kind, object: KubeObject): State {
  if (object.metadata.deletionTimestamp) return { text: "deleting", tone: "busy", why: deletionOf(object) };
  const all: Any[] = status(object).conditions ?? [];
  const main = all.find((each) => ["Ready", "Succeeded", "Available", "EndpointsReady", "Synced"].includes(each.type));
  const why = main && main.status !== "True" ? (main.message ?? "") : "";
  const text = status(object).state ?? status(object).phase;
  const trouble = why && isTrouble(main) ? main.reason : "";
  if (kind === "requests" && text === "Ready" && spec(object).autoApply === false) return { text: "Ready: waits for you", tone: "busy", why: "Choose one of its points and deploy it." };
  if (text && trouble && !GOOD.has(text) && !BAD.has(text)) return { text: `${text}: ${trouble}`, tone: "bad", why };
  if (text) return { text, tone: GOOD.has(text) ? "good" : BAD.has(text) ? "bad" : "busy", why };
  if (kind === "adapters") {
    const conflict = all.find((each) => each.type === "Conflict" && each.status === "True");
    if (conflict) return { text: "conflict", tone: "bad", why: conflict.message ?? "" };
    if (main?.status === "False") return { text: spaced(main.reason), tone: trouble ? "bad" : "busy", why };
    const same = spec(object).replicas === status(object).replicas;
    return same ? { text: "settled", tone: "good", why: "" } : { text: "scaling", tone: "busy", why };
  }
  if (!main) return { text: "new", tone: "idle", why: "No service has reported a status yet." };
  return main.status === "True" ? { text: "ready", tone: "good", why: "" } : { text: spaced(main.reason || "pending"), tone: trouble ? "bad" : "busy", why };
}

/** What an object waits for that is being deleted. */
export function deletionOf({ metadata }: KubeObject): string {
  const finalizers: string[] = metadata.finalizers ?? [];
  return `It is being deleted.${finalizers.length ? ` It remains until its finalizers are removed by their controllers: ${finalizers.join(", ")}.` : ""}`;
}

/** A graph recreates its adapters; only an adapter without a graph can be deleted. */
export function isDeletable(kind: Kind, object: KubeObject): boolean {
  return kind !== "adapters" || !object.metadata.ownerReferences?.length;
}

/** What the deletion of an object also affects. */
export function goesAlong(kind: Kind, object: KubeObject): string {
  if (kind === "deployments") {
    const pods = componentsOf(object).reduce((total, each) => total + each.desired, 0);
    return `${count(componentsOf(object).length, "component")} with ${count(pods, "replica")}, their Services and Deployments. Requests that are being answered get time to end.`;
  }
  if (kind === "requests") return "The request's profiling Job and output. A deployed graph stays and keeps its GPUs: delete the graph to free them.";
  if (kind === "models") return "Workers stop serving the model under this name.";
  return "Nothing. The graph did not create this adapter, and the component keeps its replicas.";
}

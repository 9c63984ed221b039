// The fields of the form: one row for each field of the intent, with the modes that have the field.
import type { Any } from "../api/client.ts";

export type FieldType = "text" | "number" | "select" | "check" | "boolean" | "list" | "map" | "json";

export interface Field {
  pointer: string;
  label: string;
  type: FieldType;
  help?: string;
  modes?: "graph" | "objective";
  options?: string[];
  /** Values that the cluster suggests; others are allowed, too. */
  suggest?: "skus" | "products";
  placeholder?: string;
  required?: boolean;
  unit?: string;
  when?: (intent: Any) => boolean;
}

export interface Group {
  title: string;
  /** Initially open; the others open with a click. */
  open: boolean;
  modes?: "graph" | "objective";
  fields: Field[];
}

const disaggregated = (intent: Any): boolean => intent.serving?.mode === "disaggregated";
const text = (pointer: string, label: string, more: Partial<Field> = {}): Field => ({ pointer, label, type: "text", ...more });
const number = (pointer: string, label: string, more: Partial<Field> = {}): Field => ({ pointer, label, type: "number", ...more });
const check = (pointer: string, label: string, more: Partial<Field> = {}): Field => ({ pointer, label, type: "check", ...more });
const boolean = (pointer: string, label: string, more: Partial<Field> = {}): Field => ({ pointer, label, type: "boolean", ...more });
const select = (pointer: string, label: string, options: string[], more: Partial<Field> = {}): Field => ({ pointer, label, type: "select", options, ...more });
const graph = { modes: "graph" as const };
const objective = { modes: "objective" as const };

export const GROUPS: Group[] = [
  {
    title: "What to serve",
    open: true,
    fields: [
      text("/model/name", "Model", { required: true, placeholder: "Qwen/Qwen3-0.6B", help: "Name on Hugging Face, or a path in the containers." }),
      text("/name", "Name", { required: true, placeholder: "qwen", help: "Name of the graph or the request: lower-case letters, digits and hyphens." }),
      select("/backend", "Engine", ["vllm", "sglang", "trtllm"], { help: "Optional for an objective." }),
    ],
  },
  {
    title: "What users should get",
    open: true,
    ...objective,
    fields: [
      number("/objective/ttftMs", "TTFT", { ...objective, unit: "ms", help: "Time to the first token.", placeholder: "600" }),
      number("/objective/itlMs", "ITL", { ...objective, unit: "ms", help: "Time between two tokens.", placeholder: "30" }),
      number("/objective/e2eMs", "End-to-end latency", { ...objective, unit: "ms", help: "Of a complete answer, instead of the other two." }),
      select("/objective/optimizeFor", "Optimize for", ["latency", "throughput"], { ...objective, help: "If no time is set." }),
      number("/workload/isl", "Prompt tokens (ISL)", { ...objective, placeholder: "4000" }),
      number("/workload/osl", "Answer tokens (OSL)", { ...objective, placeholder: "1000" }),
      number("/workload/concurrency", "Concurrent requests", objective),
      number("/workload/requestRate", "Requests per second", objective),
    ],
  },
  {
    title: "On which GPUs",
    open: true,
    ...objective,
    fields: [
      number("/hardware/totalGpus", "GPUs at most", { ...objective, placeholder: "16" }),
      text("/hardware/gpuSku", "Kind of GPU", { ...objective, suggest: "skus", placeholder: "discovered" }),
      number("/hardware/gpusPerNode", "GPUs per node", objective),
      number("/hardware/vramMib", "Memory of a GPU", { ...objective, unit: "MiB" }),
      select("/hardware/interconnect", "Interconnect", ["nvlink", "pcie"], objective),
      check("/hardware/rdma", "Nodes reach each other by RDMA", objective),
    ],
  },
  {
    title: "Search",
    open: false,
    ...objective,
    fields: [
      select("/objective/search", "Search", ["rapid", "thorough"], { ...objective, help: "Rapid simulates in seconds, thorough measures on the cluster." }),
      boolean("/objective/autoApply", "Deploy the result", { ...objective, help: "Deploy immediately, without asking you to choose a point." }),
      { pointer: "/planner", label: "Planner", type: "json", ...objective, help: "PlannerConfig as YAML: the planner scales with the traffic.", placeholder: "optimization_target: sla" },
    ],
  },
  {
    title: "Workers",
    open: true,
    ...graph,
    fields: [
      select("/serving/mode", "Serving", ["aggregated", "disaggregated"], { ...graph, help: "Disaggregated: separate GPUs for prompts and answers." }),
      number("/hardware/gpusPerReplica", "GPUs per replica", { ...graph, placeholder: "1" }),
      number("/serving/replicas/worker", "Workers", { ...graph, placeholder: "1", when: (intent) => !disaggregated(intent) }),
      number("/serving/replicas/prefill", "Prefill workers", { ...graph, placeholder: "1", when: disaggregated }),
      number("/serving/replicas/decode", "Decode workers", { ...graph, placeholder: "1", when: disaggregated }),
      number("/serving/replicas/frontend", "Frontends", { ...graph, placeholder: "1" }),
      select("/serving/router", "Router", ["round-robin", "random", "kv", "direct"], { ...graph, help: "kv sends a request where its prefix is cached." }),
      check("/serving/autoscaling", "Scaling adapters for workers", { ...graph, help: "For HPA, KEDA and planners." }),
    ],
  },
  {
    title: "Parallelism and hardware",
    open: false,
    ...graph,
    fields: [
      number("/parallelism/tensor", "Tensor parallel", graph),
      number("/parallelism/pipeline", "Pipeline parallel", graph),
      number("/parallelism/data", "Data parallel", graph),
      number("/parallelism/expert", "Expert parallel", graph),
      text("/hardware/gpuProduct", "GPU product", { ...graph, suggest: "products", placeholder: "any", help: "Label nvidia.com/gpu.product of nodes." }),
      number("/hardware/gpusPerNode", "GPUs per node", { ...graph, help: "A replica with more spans several nodes." }),
      text("/hardware/cpu", "CPUs of a worker", { ...graph, placeholder: "8" }),
      text("/hardware/memory", "Memory of a worker", { ...graph, placeholder: "64Gi" }),
      text("/hardware/sharedMemory", "Shared memory", { ...graph, placeholder: "8Gi" }),
    ],
  },
  {
    title: "Engine",
    open: false,
    ...graph,
    fields: [
      number("/engine/contextLength", "Context length", graph),
      number("/engine/maxBatchSize", "Concurrent sequences", graph),
      text("/engine/dtype", "Format of weights", { ...graph, placeholder: "bfloat16" }),
      text("/engine/quantization", "Quantization", { ...graph, placeholder: "fp8" }),
      boolean("/engine/prefixCache", "Prefix cache", graph),
      check("/engine/trustRemoteCode", "Run code that comes with the model", graph),
      { pointer: "/engine/args", label: "Further arguments", type: "list", ...graph, help: "One per line, appended unchanged." },
      { pointer: "/engine/envSecrets", label: "Secrets as variables", type: "list", ...graph, help: "Names, one per line. The page never reads their values." },
    ],
  },
  {
    title: "Model files and secrets",
    open: false,
    fields: [
      text("/model/tokenSecret", "Secret with HF_TOKEN", { ...graph, help: "By name." }),
      text("/model/cache/claim", "Volume claim with the model"),
      text("/model/cache/path", "Path in the volume", { when: (intent) => Boolean(intent.model?.cache?.claim) }),
      text("/model/cache/mountPath", "Mounted at", { placeholder: "/opt/model-cache", when: (intent) => Boolean(intent.model?.cache?.claim) }),
      text("/model/revision", "Revision", graph),
      text("/model/servedName", "Served as", graph),
      text("/images/runtime", "Image", { help: "For an objective: image of the profiling Job." }),
      { pointer: "/images/pullSecrets", label: "Pull secrets", type: "list", help: "Names, one per line." },
      text("/compilationCache/claim", "Volume claim for compiled kernels", graph),
      text("/compilationCache/mountPath", "Kernels mounted at", { ...graph, when: (intent) => Boolean(intent.compilationCache?.claim) }),
    ],
  },
  {
    title: "Placement, labels and variables",
    open: false,
    fields: [
      { pointer: "/placement/nodeSelector", label: "Node selector", type: "map", ...graph, help: "key=value, one a line." },
      { pointer: "/placement/tolerations", label: "Tolerations", type: "json", help: "A list, as YAML.", placeholder: "- key: nvidia.com/gpu\n  operator: Exists" },
      text("/placement/priorityClass", "Priority class", graph),
      text("/placement/scheduler", "Scheduler", graph),
      text("/placement/topology/name", "Cluster topology"),
      text("/placement/topology/domain", "Packed in one", { placeholder: "rack", when: (intent) => Boolean(intent.placement?.topology?.name) }),
      { pointer: "/labels", label: "Labels", type: "map", help: "key=value, one a line." },
      { pointer: "/annotations", label: "Annotations", type: "map", help: "key=value, one a line." },
      { pointer: "/engine/env", label: "Variables", type: "map", help: "key=value, one a line. Secrets do not belong here." },
      check("/mocker", "Simulated engines, without GPUs"),
    ],
  },
];

export const FIELDS: Field[] = GROUPS.flatMap((group) => group.fields);
const BY_POINTER = new Map(FIELDS.map((field) => [field.pointer, field]));

/** The type of an intent field; `text` for a field that the form does not have. */
export function typeOf(pointer: string): FieldType {
  return BY_POINTER.get(pointer)?.type ?? "text";
}

/** Fields that the form shows for an intent. */
export function isShown(field: Field, intent: Any): boolean {
  return (!field.modes || field.modes === intent.mode) && (field.when?.(intent) ?? true);
}

/** The field at which a refusal is shown: the named field, or its nearest parent. */
export function fieldAt(pointer: string, intent: Any): Field | undefined {
  for (let place = pointer; place; place = place.slice(0, place.lastIndexOf("/"))) {
    const match = FIELDS.find((field) => field.pointer === place && isShown(field, intent));
    if (match) return match;
  }
  return FIELDS.find((field) => pointer && field.pointer.startsWith(`${pointer}/`) && isShown(field, intent));
}

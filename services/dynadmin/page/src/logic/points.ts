// Points of an estimate or of a request in words, and as an intent. Pure.
import type { Any } from "../api/client.ts";
import { count } from "./format.ts";
import { gpusOf } from "./kinds.ts";

const ROLES: Record<string, string> = { agg: "worker", prefill: "prefill", decode: "decode" };

/** A deployment in a line: `sglang, 4 × tp4`. */
export function pointWords(figures: Any): string {
  if (figures.words) return `${figures.backend}, ${figures.words}`;
  const parts = Object.entries<Any>(figures.parallelism ?? {}).map(([role, each]) => {
    const sizes = [`tp${each.tp}`, each.pp > 1 && `pp${each.pp}`, each.dp > 1 && `dp${each.dp}`].filter(Boolean).join(" ");
    return `${each.replicas} × ${role === "agg" ? "" : `${role} `}${sizes}`;
  });
  return [figures.backend, parts.join(" + ")].filter(Boolean).join(", ");
}

const SOURCES: Record<string, string> = { aiconfigurator: "Simulated by AI Configurator.", naive: "Based on GPU memory only.", thorough: "Measured on the cluster." };

/** Sources of the points' figures. */
export function sourceWords(source: string): string {
  return SOURCES[source] ?? `Figures of ${source || "profiling"}.`;
}

/** The workers of a graph in a line: `vllm, worker 2 × 1 GPU`. */
export function graphWords(graph: Any): string {
  const workers = (graph.spec?.components ?? []).filter((each: Any) => each.type !== "frontend" && each.type !== "planner");
  const words = workers.map((each: Any) => {
    const gpus = gpusOf({ ...graph, spec: { components: [{ ...each, replicas: 1 }] } });
    return `${each.name} ${each.replicas ?? 1}${gpus ? ` × ${count(gpus, "GPU")}` : ""}`;
  });
  return [graph.spec?.backendFramework, ...words].filter(Boolean).join(", ");
}

/** The points of the front, ordered by tokens per second of a user: a selected point may be below it. */
export function frontOf<P extends { figures: Any }>(points: P[]): P[] {
  const user = (each: P): number => each.figures.tokensPerSecondPerUser;
  let best = 0;
  const front = [...points].sort((a, b) => user(b) - user(a)).filter(({ figures: { tokensPerSecondPerGPU: here } }) => here > best && (best = here));
  return front.reverse();
}

/** The graph intent of a point; fields that both modes share stay. */
export function asGraph(intent: Any, figures: Any): Any {
  const roles = Object.entries<Any>(figures.parallelism ?? {});
  const replicas = Object.fromEntries(roles.map(([role, each]) => [ROLES[role] ?? role, each.replicas]));
  // The form has one engine size: the size of the decode workers.
  const [, size] = roles.find(([role]) => role !== "prefill") ?? ["", {}];
  const kept = ["name", "model", "labels", "annotations", "images", "mocker"].filter((key) => intent[key] !== undefined);
  const placement = intent.placement ? { placement: intent.placement } : {};
  return {
    mode: "graph",
    ...Object.fromEntries(kept.map((key) => [key, intent[key]])),
    ...placement,
    backend: figures.backend,
    serving: { mode: roles.length > 1 ? "disaggregated" : "aggregated", replicas },
    hardware: { gpusPerReplica: size.gpus ?? 1 },
    parallelism: {
      tensor: size.tp ?? 1,
      ...(size.pp > 1 ? { pipeline: size.pp } : {}),
      ...(size.dp > 1 ? { data: size.dp } : {}),
      ...(size.moe_ep > 1 ? { expert: size.moe_ep } : {}),
    },
    ...(size.batch_size ? { engine: { maxBatchSize: size.batch_size } } : {}),
  };
}

/** Whether the form can express the whole point: roles of different sizes need the manifest. */
export function isWhole(figures: Any): boolean {
  const sizes = Object.values<Any>(figures.parallelism ?? {}).map((each) => [each.tp, each.pp, each.dp, each.gpus].join());
  return new Set(sizes).size <= 1;
}

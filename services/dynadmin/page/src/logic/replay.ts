// Replays of a graph's traffic: the user's changes, and the results as rows and series. Pure.
import type { Entry, Schemas } from "../api/client.ts";
import type { Series } from "./decisions.ts";
import { figure } from "./format.ts";

export type Replay = Schemas["Replay"];
export type Run = Schemas["ReplayRun"];

export interface Change {
  /** Key of the PlannerConfig. */
  name: string;
  label: string;
  unit?: string;
  help?: string;
}

/** The keys that the form changes. */
export const CHANGES: Change[] = [
  { name: "gpu_price", label: "Price of a GPU", help: "0 to 1: the share of a GPU's best throughput that must meet the target times. A higher price saves GPUs." },
  { name: "attainment", label: "Share within both times", help: "0.5 to 0.999, if no price is set." },
  { name: "ttft_ms", label: "TTFT", unit: "ms" },
  { name: "itl_ms", label: "ITL", unit: "ms" },
  { name: "max_gpu_budget", label: "GPUs at most", help: "-1: no bound." },
];

/** The changes of the form; texts that are not numbers are reported at their fields, like problems of the service. */
export function changesOf(texts: Record<string, string>): { changes: Record<string, number>; errors: Entry[] } {
  const changes: Record<string, number> = {};
  const errors: Entry[] = [];
  for (const { name } of CHANGES) {
    const text = (texts[name] ?? "").trim();
    if (!text) continue;
    const value = Number(text);
    if (Number.isFinite(value)) changes[name] = value;
    else errors.push({ pointer: `/changes/${name}`, detail: "a number is needed", source: null });
  }
  return { changes, errors };
}

/** The problems of one field, and those that no field of the form has. */
export function problemOf(errors: Entry[], name: string): string {
  return errors.filter((each) => each.pointer === `/changes/${name}`).map((each) => each.detail).join("; ");
}

export function otherProblems(errors: Entry[]): string[] {
  const known = CHANGES.map((each) => `/changes/${each.name}`);
  return errors.filter((each) => !known.includes(each.pointer)).map((each) => `${each.pointer}: ${each.detail}`);
}

const share = (value: number | null): string => (value === null ? "–" : figure(value * 100, "%"));

const ROWS: [string, (run: Run) => string][] = [
  ["Within both times", (run) => share(run.attainment)],
  ["TTFT in time", (run) => share(run.ttftAttainment)],
  ["ITL in time", (run) => share(run.itlAttainment)],
  ["TTFT, mean", (run) => figure(run.ttftMean, "ms")],
  ["TTFT, p99", (run) => figure(run.ttftP99, "ms")],
  ["ITL, mean", (run) => figure(run.itlMean, "ms")],
  ["ITL, p99", (run) => figure(run.itlP99, "ms")],
  ["GPU-hours", (run) => figure(run.gpuHours)],
  ["Changes of replicas", (run) => figure(run.scalings)],
];

/** The table: one figure per row, current and changed. */
export function rowsOf(replay: Replay): [name: string, current: string, changed: string][] {
  return ROWS.map(([name, text]) => [name, text(replay.current), text(replay.changed)]);
}

/** GPUs of both runs over time; milliseconds from the start. */
export function gpusOf(replay: Replay): Series[] {
  const points = (run: Run): Series["points"] => run.replicas.map((each) => ({ at: each.at * 1000, value: each.gpus }));
  return [
    { name: "current", points: points(replay.current) },
    { name: "changed", points: points(replay.changed) },
  ];
}

/** The traffic of the replay, a step for each decision. */
export function trafficOf(replay: Replay): Series[] {
  let at = 0;
  const points = replay.traffic.map((each) => {
    const point = { at, value: each.requestsPerSecond };
    at += each.seconds * 1000;
    return point;
  });
  const last = points.at(-1);
  return [{ name: "requests/s", points: last ? [...points, { at, value: last.value }] : [] }];
}

// Decisions of planner and scaler, as series and in words. Pure.
import { figure, spaced } from "./format.ts";

export interface Decision {
  id: string;
  time: string;
  event: string;
  reason: string;
  message: string;
  policy: string;
  advisory: boolean;
  replicas: Record<string, number>;
  current: Record<string, number>;
  inputs: Record<string, number>;
  predictions: Record<string, number>;
  missing: Record<string, string>;
  alternatives: { replicas: Record<string, number>; reason: string }[];
  budgets: { name?: string; message?: string; reason?: string }[];
  command: string;
}

export interface Series {
  name: string;
  points: { at: number; value: number }[];
}

/** Predictions that are a share of requests, with their names in a plot. */
const SHARES: [RegExp, string][] = [
  [/^attainment_aim$/, "aim"],
  [/^attainment_of_last_hour$/, "last hour"],
  [/^(\w+)_share_within_target$/, "$1, expected"],
];

/** The lines of a plot: replicas by pool, observed and predicted traffic, or attainment. */
export function seriesOf(all: Decision[], what: "replicas" | "traffic" | "attainment"): Series[] {
  const byName = new Map<string, Series>();
  const add = (name: string, time: string, value: unknown): void => {
    const at = Date.parse(time);
    if (typeof value !== "number" || !Number.isFinite(value) || Number.isNaN(at)) return;
    const series = byName.get(name) ?? { name, points: [] };
    series.points.push({ at, value });
    byName.set(name, series);
  };
  for (const each of all) {
    if (what === "replicas") {
      const isRefused = /refused|held/.test(each.event);
      const values = isRefused ? each.current : { ...each.current, ...each.replicas };
      for (const [pool, value] of Object.entries(values)) add(pool, each.time, value);
      continue;
    }
    if (what === "traffic") {
      add("observed", each.time, each.inputs.requestsPerSecond);
      add("forecast", each.time, each.predictions.requests_per_second);
      continue;
    }
    for (const [name, value] of Object.entries(each.predictions)) {
      const share = SHARES.find(([pattern]) => pattern.test(name));
      if (share) add(name.replace(...share), each.time, 100 * value);
    }
  }
  return [...byName.values()].slice(0, 6);
}

/** The changes: `prefill 2 to 3, decode stays 2`. */
export function replicasOf(each: Decision): string {
  const pools = Object.keys({ ...each.current, ...each.replicas });
  return pools
    .map((pool) => {
      const [from, to] = [each.current[pool], each.replicas[pool]];
      if (to === undefined || to === from) return `${pool} stays ${from ?? "as it is"}`;
      return from === undefined ? `${pool} to ${to}` : `${pool} ${from} to ${to}`;
    })
    .join(", ");
}

/** Counts by pool: `decode 2, prefill 1`. */
export function wordsOf(replicas: Record<string, number>): string {
  return Object.entries(replicas).map(([pool, number]) => `${pool} ${number}`).join(", ");
}

const WORDS: Record<string, string> = { requestsPerSecond: "requests/s", isl: "prompt tokens (ISL)", osl: "answer tokens (OSL)" };

/** A figure of a decision as words, with its unit. */
export function figureOf(name: string, value: number): [label: string, text: string] {
  const words = (WORDS[name] ?? spaced(name.replace(/_?(seconds|ms)(?=\.|$)/, "").replace(".", ", "))).replace(/\b(itl|ttft|kv)\b/g, (each) => each.toUpperCase());
  if (/seconds(\.|$)/.test(name)) return [words, figure(value, "s")];
  if (/_ms(\.|$)/.test(name)) return [words, figure(value, "ms")];
  if (/attainment|share|hit_rate/.test(name)) return [words, figure(100 * value, "%")];
  return [words, figure(value)];
}

/** The limit that capped a decision; empty without one. */
export function capOf(each: Decision): string {
  const budgets = each.budgets.map((one) => one.message || one.reason || one.name).filter(Boolean);
  if (budgets.length) return `Capped by ${budgets.join("; ")}`;
  if (each.reason === "hold_budget") return "Capped: the GPU budget";
  if (/cap|budget|limit|max|min_/i.test(each.reason)) return `Capped: ${spaced(each.reason)}`;
  const missing = Object.entries(each.missing);
  return missing.length ? `Without ${missing.map(([name, why]) => `${spaced(name)} (${spaced(why)})`).join(", ")}` : "";
}

// Decisions of planner and scaler, as series and in words. Pure.

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

const TRAFFIC = /requests?PerSecond|requestRate|requests$/i;
const ATTAINED = /attain|goodput|within/i;

/** The lines of a plot: replicas by pool, traffic as it was and as it was predicted, or attainment. */
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
    const pattern = what === "traffic" ? TRAFFIC : ATTAINED;
    for (const [name, value] of Object.entries(each.inputs)) if (pattern.test(name)) add(name, each.time, value);
    for (const [name, value] of Object.entries(each.predictions)) if (pattern.test(name)) add(`${name}, predicted`, each.time, value);
  }
  return [...byName.values()].slice(0, 6);
}

/** What changes: `prefill 2 to 3, decode stays 2`. */
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

/** What capped a decision; empty where nothing did. */
export function capOf(each: Decision): string {
  const budgets = each.budgets.map((one) => one.message || one.reason || one.name).filter(Boolean);
  if (budgets.length) return `Capped by ${budgets.join("; ")}`;
  if (/cap|budget|limit|max|min_/i.test(each.reason)) return `Capped: ${each.reason.replaceAll("_", " ")}`;
  const missing = Object.entries(each.missing);
  return missing.length ? `Without ${missing.map(([name, why]) => `${name} (${why.replaceAll("_", " ")})`).join(", ")}` : "";
}

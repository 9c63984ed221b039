// Pods that are not ready: why, what to do, and where their logs are. Pure.
import type { Schemas } from "../api/client.ts";
import { adviceOn } from "./advice.ts";

type Pod = Schemas["Pod"];

/** Pods that should be ready and are not, those with a reason first. */
export function unready(pods: Pod[]): Pod[] {
  const all = pods.filter((each) => !each.ready && each.phase !== "Succeeded");
  return all.sort((one, other) => Number(!one.message) - Number(!other.message) || one.name.localeCompare(other.name));
}

/** Why a pod is not ready. */
export function whyOf(pod: Pod): string {
  return pod.message || (pod.phase === "Running" ? "It runs, but is not ready." : `${pod.phase}.`);
}

/** What to do about a pod. Its message is `CONTAINER: REASON WORDS`; without a node, it has the words of the scheduler. */
export function adviceOf({ message, node }: Pod): string {
  if (!message) return "";
  return adviceOn(node ? (/^[^:]+: (\w+)/.exec(message)?.[1] ?? "") : "Unschedulable");
}

/** The selection of logs in an address. */
export interface Selection {
  component: string;
  pod: string;
  /** Logs of the containers before their last restart. */
  previous: boolean;
}

export function selectionOf(query: string): Selection {
  const given = new URLSearchParams(query);
  return { component: given.get("component") ?? "", pod: given.get("pod") ?? "", previous: given.get("previous") === "true" };
}

export function queryOf({ component = "", pod = "", previous = false }: Partial<Selection>): string {
  const query = new URLSearchParams();
  if (component) query.set("component", component);
  if (pod) query.set("pod", pod);
  if (previous) query.set("previous", "true");
  return query.toString();
}

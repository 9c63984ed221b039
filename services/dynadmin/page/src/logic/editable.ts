// An object as a person edits it. Pure.
import type { Any, KubeObject } from "../api/client.ts";

/** Written by the API server alone: a manifest need not have them. Owners stay: what is saved without them loses them. */
const SERVERS = new Set(["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"]);

/** The object without its status, and without what only the API server writes. */
export function editable({ status: _, ...rest }: KubeObject): Any {
  return { ...rest, metadata: Object.fromEntries(Object.entries(rest.metadata).filter(([key]) => !SERVERS.has(key))) };
}

// An object as the user edits it. Pure.
import type { Any, KubeObject } from "../api/client.ts";

/** Only the API server writes these fields: a manifest does not need them. Owners stay: an object saved without them would lose them. */
const SERVERS = new Set(["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"]);

/** The object without its status, and without fields that only the API server writes. */
export function editable({ status: _, ...rest }: KubeObject): Any {
  return { ...rest, metadata: Object.fromEntries(Object.entries(rest.metadata).filter(([key]) => !SERVERS.has(key))) };
}

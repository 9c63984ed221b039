// Maps an edited manifest back to the form: values that came from a field go to that field, the rest is kept as changes. Pure.
//
// The API says where each field of the manifest came from (`origins`). A change is first offered to its field; then the
// API translates again, and what still differs from the edited text is kept and applied to every later translation.
import type { Any } from "../api/client.ts";
import { get, partsOf, pointerOf, same, set } from "./pointer.ts";

export interface Change {
  pointer: string;
  /** undefined: removed. */
  value: Any;
}

/** The changes from `before` to `after`, as small as pointers allow. Lists of different lengths are one change. */
export function changes(before: Any, after: Any, at: string[] = []): Change[] {
  if (same(before, after)) return [];
  const isObject = (value: Any): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((each, index) => changes(each, after[index], [...at, String(index)]));
  if (!isObject(before) || !isObject(after)) return [{ pointer: pointerOf(at), value: after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => changes(before[key], after[key], [...at, key]));
}

/** The manifest with changes that the form does not show. A change whose path no longer exists is omitted. */
export function applied(manifest: Any, kept: Change[]): Any {
  return kept.reduce((result, each) => {
    const parent = pointerOf(partsOf(each.pointer).slice(0, -1));
    const hasPlace = parent === "" || typeof get(result, parent) === "object" || each.value !== undefined;
    return hasPlace ? set(result, each.pointer, each.value) : result;
  }, manifest);
}

/** The intent with every change that one of its fields can express; `types` has the types of the fields. */
export function offered(intent: Any, manifest: Any, edited: Any, origins: Record<string, string>, types: (pointer: string) => string): Any {
  let result = intent;
  for (const change of changes(manifest, edited)) {
    const replaced = fieldOf(change, manifest, origins, types, result);
    if (replaced) result = set(result, replaced.pointer, replaced.value);
  }
  return result;
}

function fieldOf(change: Change, manifest: Any, origins: Record<string, string>, types: (pointer: string) => string, intent: Any): Change | null {
  const parts = partsOf(change.pointer);
  for (let length = parts.length; length > 0; length--) {
    const field = origins[pointerOf(parts.slice(0, length))];
    if (field === undefined) continue;
    const rest = parts.slice(length);
    const type = types(field);
    if (field === "/engine/args") return appended(change, manifest, intent);
    if (type === "map" && rest.length <= 1) return { pointer: field + pointerOf(rest), value: change.value };
    if (type === "list" || type === "json") return null;
    if (typeof change.value === "object" && change.value !== null) return null;
    return { pointer: field, value: coerced(change.value, type) };
  }
  return null;
}

/** Appended arguments are the form's further arguments; the others belong to fields that the API writes. */
function appended(change: Change, manifest: Any, intent: Any): Change | null {
  const before: Any = get(manifest, change.pointer);
  if (!Array.isArray(before) || !Array.isArray(change.value)) return null;
  const own: string[] = get(intent, "/engine/args") ?? [];
  const written = before.slice(0, before.length - own.length);
  if (!same(change.value.slice(0, written.length), written)) return null;
  const args = change.value.slice(written.length);
  return { pointer: "/engine/args", value: args.length ? args : undefined };
}

function coerced(value: Any, type: string): Any {
  if (type === "number" && typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return Number(value);
  if (type === "text" && typeof value === "number") return String(value);
  return value;
}

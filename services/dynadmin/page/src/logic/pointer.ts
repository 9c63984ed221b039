// Values by JSON pointers (RFC 6901). Nothing is changed in place. Pure.
import type { Any } from "../api/client.ts";

export function partsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function pointerOf(parts: (string | number)[]): string {
  return parts.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

export function get(object: Any, pointer: string): Any {
  return partsOf(pointer).reduce((value, part) => (value === null || value === undefined ? undefined : value[part]), object);
}

/** The object with another value at the pointer. `undefined` removes the value, and groups that become empty. */
export function set(object: Any, pointer: string, value: Any): Any {
  return write(object, partsOf(pointer), value) ?? {};
}

function write(object: Any, parts: string[], value: Any): Any {
  const [first, ...rest] = parts;
  if (first === undefined) return value;
  if (Array.isArray(object)) {
    const copy = [...object];
    const next = write(copy[Number(first)], rest, value);
    if (next === undefined) copy.splice(Number(first), 1);
    else copy[Number(first)] = next;
    return copy;
  }
  const copy: Any = { ...(object ?? {}) };
  const next = write(copy[first], rest, value);
  if (next === undefined) delete copy[first];
  else copy[first] = next;
  return Object.keys(copy).length ? copy : undefined;
}

export function same(a: Any, b: Any): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => same(a[key], b[key]));
}

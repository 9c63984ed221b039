// Converts between values of fields and the texts that users type. Pure.
import { parse, stringify } from "./yaml.ts";
import type { Any } from "../api/client.ts";
import type { FieldType } from "../deploy/fields.ts";

/** A value as the text of its field. */
export function shown(type: FieldType, value: Any): string {
  if (value === undefined || value === null) return "";
  if (type === "map") return Object.entries(value).map(([key, each]) => `${key}=${String(each)}`).join("\n");
  if (type === "list") return (value as string[]).join("\n");
  if (type === "json") return stringify(value).trimEnd();
  return String(value);
}

/** The value of a text; throws Error with the reason if it is invalid. An empty text is undefined: the field is not set. */
export function meant(type: FieldType, text: string): Any {
  if (text.trim() === "") return undefined;
  if (type === "number") {
    const number = Number(text);
    if (!Number.isFinite(number)) throw new Error("a number is needed");
    return number;
  }
  if (type === "boolean") return text === "true";
  if (type === "list") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (type === "map") return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map(pair));
  if (type === "json") {
    const value: Any = parse(text);
    if (typeof value !== "object" || value === null) throw new Error("an object or a list is needed");
    return value;
  }
  return text.trim();
}

/** A token as users paste it: with the line breaks of a terminal, or with the prefix of a header. */
export function tokenOf(text: string): string {
  return text.replace(/^\s*Bearer\s/i, "").replace(/\s/g, "");
}

function pair(line: string): [string, string] {
  const at = line.indexOf("=");
  if (at < 1) throw new Error(`${line.trim()}: key=value is needed`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

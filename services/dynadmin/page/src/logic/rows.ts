// Rows of a list: the cells of each object, the filtered rows, and their order. Pure.
import type { KubeObject } from "../api/client.ts";
import { KINDS, stateOf, type State, type Tone } from "./kinds.ts";
import type { Kind } from "./route.ts";

export interface Row {
  object: KubeObject;
  state: State;
  /** Cells, one for each column of the kind. */
  values: string[];
  /** What a filter searches. */
  text: string;
}

/** The user's filter and order; part of the address. */
export interface Choice {
  filter: string;
  /** Title of a column. */
  by: string;
  descending: boolean;
}

export const [NAME, STATE, AGE] = ["Name", "State", "Age"];
/** Objects that need attention come first. */
const TONES: Tone[] = ["bad", "busy", "idle", "good"];
const { compare } = new Intl.Collator("en", { numeric: true });
/** A stream replaces a changed object: the cached row is valid as long as the object exists. */
const made = new WeakMap<KubeObject, Row>();

export function rowOf(kind: Kind, object: KubeObject): Row {
  const known = made.get(object);
  if (known) return known;
  const state = stateOf(kind, object);
  const values = KINDS[kind].columns.map((column) => column.value(object));
  const row = { object, state, values, text: [object.metadata.name, state.text, ...values].join(" ").toLowerCase() };
  made.set(object, row);
  return row;
}

/** The filtered rows, ordered by a column, then by name. */
export function chosen(kind: Kind, rows: Row[], { filter, by, descending }: Choice): Row[] {
  const lowered = filter.toLowerCase();
  const left = rows.filter((each) => each.text.includes(lowered));
  const key = keyOf(kind, by);
  const sign = descending ? -1 : 1;
  return left.sort((a, b) => sign * compare(key(a), key(b)) || compare(a.object.metadata.name, b.object.metadata.name));
}

function keyOf(kind: Kind, by: string): (row: Row) => string {
  const column = KINDS[kind].columns.findIndex((each) => each.title === by);
  if (column >= 0) return (row) => row.values[column] ?? "";
  if (by === STATE) return ({ state }) => `${TONES.indexOf(state.tone)} ${state.text}`;
  // The youngest has the smallest age.
  if (by === AGE) return ({ object }) => String(Number.MAX_SAFE_INTEGER - (Date.parse(object.metadata.creationTimestamp) || 0));
  return ({ object }) => object.metadata.name;
}

/** The order of a choice, as written in the address. */
export function orderOf({ by, descending }: Choice): string {
  return (descending ? "-" : "") + by;
}

/** All orders of a kind's list with labels, for screens that are too small for column headings. */
export function orders(kind: Kind): [string, string][] {
  const titles = [NAME!, STATE!, ...KINDS[kind].columns.map((each) => each.title), AGE!];
  return titles.flatMap((by): [string, string][] => [[by, by], [`-${by}`, `${by}, descending`]]);
}

/** The same choice in another order. */
export function ordered(choice: Choice, order: string): Choice {
  return { ...choice, by: order.replace(/^-/, ""), descending: order.startsWith("-") };
}

/** A choice as the query of an address; empty for the default. */
export function queryOf({ filter, by, descending }: Choice): string {
  const query = new URLSearchParams();
  if (filter) query.set("filter", filter);
  if (by !== NAME || descending) query.set("sort", orderOf({ filter, by, descending }));
  return query.toString();
}

export function choiceOf(query: string): Choice {
  const given = new URLSearchParams(query);
  return ordered({ filter: given.get("filter") ?? "", by: NAME!, descending: false }, given.get("sort") || NAME!);
}

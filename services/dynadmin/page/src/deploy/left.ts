// What the form had when a session ended: the same person has it again after the sign-in, also where that leads away from the page.
import type { Any } from "../api/client.ts";
import type { Change } from "../logic/inverse.ts";
import { get, set } from "../logic/pointer.ts";
import type { Said } from "./draft.ts";

/** Whose it is, and whether something was left out. */
export type Left = Said & { user: string; isPart?: boolean };

const KEY = "dynadmin.left";
/** How long a sign-in at the identity provider may take, milliseconds: as long as the service gives it. */
const KEPT = 600_000;
/** Fields that may hold a secret. The browser writes what it stores to disk. */
const SECRET = ["/engine/env", "/engine/args"];
const SECRET_KEYS = /\b(env|args|command|httpHeaders)\b/;

let left: Left | null = null;

/** Keep it in memory; null: the person is done with it. */
export function leave(said: Left | null): void {
  left = said;
}

/** The page is left for a sign-in: what is not a secret goes along in the storage of this tab. */
export function carry(): void {
  if (!left) return;
  const { user, intent, kept } = left;
  const isSecret = ({ pointer, value }: Change): boolean => SECRET_KEYS.test(`${pointer} ${JSON.stringify(value)}`);
  const isPart = SECRET.some((each) => get(intent, each) !== undefined) || kept.some(isSecret);
  const plain: Any = SECRET.reduce((result, each) => set(result, each, undefined), intent);
  const said: Left & { at: number } = { user, intent: plain, kept: kept.filter((each) => !isSecret(each)), isPart, at: Date.now() };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(said));
  } catch {
    // A browser that stores nothing, or has no room: the form is empty then.
  }
}

/** What a person left, once; null where that is nothing, or another person's. */
export function taken(user: string): Left | null {
  const said = left ?? stored();
  left = null;
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing is stored.
  }
  return said?.user === user ? said : null;
}

function stored(): Left | null {
  try {
    const said = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as (Left & { at: number }) | null;
    return said && Math.abs(Date.now() - said.at) < KEPT ? said : null;
  } catch {
    return null;
  }
}

// The form's content, restored for the same user when the form opens again: from another view, or after a sign-in, even if the
// sign-in leaves the page.
import type { Any } from "../api/client.ts";
import type { Change } from "../logic/inverse.ts";
import { get, set } from "../logic/pointer.ts";
import type { Said } from "./draft.ts";

/** The user, and whether something was omitted. */
export type Left = Said & { user: string; isPart?: boolean };

const KEY = "dynadmin.left";
/** How long a sign-in at the identity provider may take, milliseconds: the limit of the service. */
const KEPT = 600_000;
/** Fields that may hold a secret. The browser writes what it stores to disk. */
const SECRET = ["/engine/env", "/engine/args"];
const SECRET_KEYS = /\b(env|args|command|httpHeaders)\b/;

let left: Left | null = null;
/** The browser has stored the content for the sign-in. */
let isCarried = false;

/** Keep the content in memory, unless the form is empty; null: the user no longer needs it. */
export function leave(said: Left | null): void {
  left = said && (Object.keys(said.intent).some((each) => each !== "mode") || said.kept.length) ? said : null;
  isCarried = false;
}

/** A session starts: drop the content of another user. */
export function dropOthers(user: string): void {
  if (left?.user !== user) left = null;
}

/** Whether content would be lost with the page. */
export function isFilled(): boolean {
  return left !== null && !isCarried;
}

/** The browser leaves the page for a sign-in: store everything except secrets in the storage of this tab. */
export function carry(): void {
  if (!left) return;
  const { user, intent, kept } = left;
  const isSecret = ({ pointer, value }: Change): boolean => SECRET_KEYS.test(`${pointer} ${JSON.stringify(value)}`);
  const isPart = SECRET.some((each) => get(intent, each) !== undefined) || kept.some(isSecret);
  const plain: Any = SECRET.reduce((result, each) => set(result, each, undefined), intent);
  const said: Left & { at: number } = { user, intent: plain, kept: kept.filter((each) => !isSecret(each)), isPart, at: Date.now() };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(said));
    isCarried = true;
  } catch {
    // The browser stores nothing, or its storage is full: the form will be empty.
  }
}

/** The user's kept content, returned once; null if there is none, or if it belongs to another user. */
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

// The user of the page, and the user's rights in the cluster.
import { ApiProblem, call, get, hooks, useToken, type Schemas } from "./client.ts";

export type Rights = Schemas["Rights"];

export interface Session {
  user: string;
  expires: number;
}

/** The session of this browser; null without one. */
export async function current(): Promise<Session | null> {
  try {
    const answer = await get<Schemas["SessionAnswer"]>("/session");
    useToken(answer.csrfToken);
    return { user: answer.user, expires: answer.expires };
  } catch (error) {
    if (error instanceof ApiProblem && (error.status === 401 || error.status === 404)) return null;
    throw error;
  }
}

/** Start a session with a token. The page does not keep the token. */
export async function signIn(token: string): Promise<void> {
  const { body } = await call<Schemas["SessionAnswer"]>("POST", "/session", { body: { token } });
  useToken(body.csrfToken);
}

/** End the session, even if it has already expired. */
export async function signOut(): Promise<void> {
  await call("DELETE", "/session").catch((error: unknown) => {
    if (!(error instanceof ApiProblem) || error.status !== 401) throw error;
  });
  useToken("");
  hooks.signedOut("");
}

export async function namespaces(): Promise<string[]> {
  return (await get<Schemas["Namespaces"]>("/namespaces")).items.map((each) => each.name);
}

/** How long an answer about rights is valid, milliseconds: as long as the service caches it. */
const COUNTS = 60_000;
const known = new Map<string, { asked: number; answer: Promise<Rights> }>();

/** The user's rights in a namespace; read again after a minute, because rights change. */
export function rights(namespace: string): Promise<Rights> {
  const before = known.get(namespace);
  if (before && Math.abs(Date.now() - before.asked) < COUNTS) return before.answer;
  const entry = { asked: Date.now(), answer: get<Rights>(`/namespaces/${namespace}/me/access`) };
  known.set(namespace, entry);
  entry.answer.catch(() => {
    if (known.get(namespace) === entry) known.delete(namespace);
  });
  return entry.answer;
}

export function forget(): void {
  known.clear();
}

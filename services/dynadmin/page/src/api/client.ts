// Calls of the API: the session's CSRF token, request bodies, and problems (RFC 9457) as errors.
import type { components } from "#schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type Entry = Schemas["ProblemEntry"];
// Kubernetes objects have their own schemas, which the OpenAPI document does not repeat.
export type Any = any;
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Any;
  spec?: Any;
  status?: Any;
}

/** A refusal with all its reasons. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly kind: string;
  readonly errors: Entry[];
  readonly more: Record<string, Any>;

  constructor(status: number, body: Partial<Problem>) {
    super(body.detail || body.title || `the service answered with status ${status}`);
    this.status = status;
    this.kind = (body.type ?? "").replace("urn:dynamo:problem:", "");
    this.errors = body.errors ?? [];
    this.more = body as Record<string, Any>;
  }
}

export interface Answer<T> {
  body: T;
  etag: string;
  status: number;
}

export interface Options {
  body?: unknown;
  type?: string;
  headers?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  signal?: AbortSignal;
}

/** The text for a user whose session has ended. The service's own text is for programs. */
export const ENDED = "Your session has ended: log in again. What you typed is kept.";
/** Reasons of the service that are useful for users, too. */
const LOG_IN = "log in again";

let csrf = "";
export const hooks = {
  /** Called when the service no longer knows the caller, with the reason; without a reason, the user ended the session. */
  signedOut: (_why: string): void => {},
  /** Called when the browser has a session that this page did not start, perhaps of another user. */
  replaced: (): void => {},
};

/** The CSRF token for changes. Kept only in memory. */
export function useToken(token: string): void {
  csrf = token;
}

export function url(path: string, query: Options["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

/** Timeout of a request, milliseconds. The service has its own limits: seconds for reads, minutes for a simulation. */
const [READ, DONE] = [30_000, 300_000];

/** Do something that ends with `stop`, or with an error after a timeout. */
export async function within<T>(milliseconds: number, stop: AbortSignal | undefined, act: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const abort = (): void => limit.abort(stop?.reason);
  if (stop?.aborted) abort();
  stop?.addEventListener("abort", abort);
  const timer = window.setTimeout(() => limit.abort(new Error(`The service did not answer within ${milliseconds / 1000} seconds.`)), milliseconds);
  try {
    return await act(limit.signal);
  } finally {
    window.clearTimeout(timer);
    stop?.removeEventListener("abort", abort);
  }
}

/** Send a request. Throws ApiProblem if the service refuses the request, TypeError if the service cannot be reached. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  let body: string | undefined;
  if (options.body !== undefined) {
    headers["Content-Type"] = options.type ?? "application/json";
    body = typeof options.body === "string" ? options.body : JSON.stringify(options.body);
  }
  const response = await fetch(url(path, options.query), {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    ...(body === undefined ? {} : { body }),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  if (response.ok) return response;
  const text = await response.text();
  let problem: Partial<Problem> = {};
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    problem = { detail: text.slice(0, 500) };
  }
  const isOut = response.status === 401 && path !== "/session";
  if (isOut && !problem.detail?.endsWith(LOG_IN)) problem.detail = ENDED;
  const refusal = new ApiProblem(response.status, problem);
  if (refusal.kind === "csrf") {
    hooks.replaced();
    throw new Error("Another tab of this browser started a new session, which this tab now uses. Try again.");
  }
  if (isOut) hooks.signedOut(refusal.message);
  throw refusal;
}

/** Send a request and read its answer. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const [response, text] = await within(method === "GET" ? READ : DONE, options.signal, async (signal) => {
    const answer = await send(method, path, { ...options, signal });
    return [answer, await answer.text()] as const;
  });
  const json = (response.headers.get("Content-Type") ?? "").includes("json");
  return {
    body: (json && text ? JSON.parse(text) : text) as T,
    etag: response.headers.get("ETag") ?? "",
    status: response.status,
  };
}

export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return (await call<T>("GET", path, options)).body;
}

/** Whether the problem may be temporary: the request itself is valid. */
export function passes(error: unknown): boolean {
  return !(error instanceof ApiProblem) || error.status === 429 || error.status >= 500;
}

/** What went wrong, as text for users. */
export function words(error: unknown): string {
  if (error instanceof ApiProblem) {
    const all = error.errors.map((each) => (each.pointer ? `${each.pointer}: ${each.detail}` : each.detail));
    return all.length > 1 ? `${error.message} — ${all.join("; ")}` : error.message;
  }
  if (error instanceof TypeError) return "The service cannot be reached.";
  // In a parse error, the lines after the first repeat the text.
  return error instanceof Error ? error.message.split("\n")[0]! : String(error);
}

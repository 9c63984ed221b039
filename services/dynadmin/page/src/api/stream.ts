// Streams of the API that resume after an interruption. EventSource cannot send the Last-Event-ID of a list, or a body.
import { ApiProblem, hooks, send, words, type Options } from "./client.ts";
import { Parser, backoff, type Event } from "../logic/sse.ts";

export type Line = "connecting" | "live" | "broken" | "ended";

export interface Follow extends Options {
  method?: string;
  /** Whether to reconnect after an interruption; not for answers that end. */
  again: boolean;
  onEvent: (event: Event) => void;
  /** A new connection, and whether it resumes after a received event. */
  onOpen?: (resumed: boolean) => void;
  onLine?: (line: Line, detail: string) => void;
}

/** Silence after which a connection is considered dead: three heartbeats of the service. Milliseconds. */
const SILENCE = 45_000;
/** How the service reports the end of the session; the loss of other rights does not end the session. */
const EXPIRED = "the token has expired";
/** Refusals that a retry does not change. */
const FINAL = new Set([400, 401, 403, 404, 405, 422]);

/** Follow a stream until `stop` aborts it, or until it ends permanently. */
export async function follow(path: string, options: Follow, stop: AbortSignal): Promise<void> {
  const { "Last-Event-ID": first = "", ...given } = options.headers ?? {};
  let last = first;
  for (let attempt = 0; !stop.aborted; attempt++) {
    options.onLine?.("connecting", "");
    const attemptStop = new AbortController();
    const abort = (): void => attemptStop.abort();
    stop.addEventListener("abort", abort);
    // An answer that is generated on demand, such as a model's, may take longer to start.
    const silent = options.again ? silence(attemptStop) : 0;
    try {
      const headers: Record<string, string> = { ...given, Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await send(options.method ?? "GET", path, { ...options, headers, signal: attemptStop.signal });
      window.clearTimeout(silent);
      if (stop.aborted) return;
      options.onOpen?.(last !== "");
      options.onLine?.("live", "");
      for await (const event of events(response, attemptStop)) {
        // The reader has moved to something else: drop the remaining data.
        if (stop.aborted) return;
        // A final event does not prove that the next connection will last.
        if (event.event !== "error" && event.event !== "resync") attempt = 0;
        if (event.event === "resync") {
          last = "";
          break;
        }
        if (event.event === "unauthorized") {
          options.onEvent(event);
          options.onLine?.("ended", detailOf(event));
          if (detailOf(event).startsWith(EXPIRED)) hooks.signedOut(detailOf(event));
          return;
        }
        if (event.id) last = event.id;
        options.onEvent(event);
        if (event.event === "end") {
          options.onLine?.("ended", "");
          return;
        }
      }
      if (!options.again) {
        options.onLine?.("ended", "");
        return;
      }
    } catch (error) {
      if (stop.aborted) return;
      const final = error instanceof ApiProblem && FINAL.has(error.status);
      options.onLine?.(final || !options.again ? "ended" : "broken", words(error));
      if (final || !options.again) throw error;
    } finally {
      window.clearTimeout(silent);
      stop.removeEventListener("abort", abort);
      attemptStop.abort();
    }
    await pause(backoff(attempt, Math.random), stop);
  }
}

/** The timer that ends a silent connection. */
function silence(stop: AbortController): number {
  return window.setTimeout(() => stop.abort(new Error("The service was silent for 45 seconds.")), SILENCE);
}

async function* events(response: Response, stop: AbortController): AsyncGenerator<Event> {
  const parser = new Parser();
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  let silent = silence(stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      window.clearTimeout(silent);
      silent = silence(stop);
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    window.clearTimeout(silent);
  }
}

function detailOf(event: Event): string {
  try {
    return String((JSON.parse(event.data) as { detail?: string }).detail ?? "");
  } catch {
    return event.data;
  }
}

function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      window.clearTimeout(timer);
      stop.removeEventListener("abort", done);
      resolve();
    };
    const timer = window.setTimeout(done, milliseconds);
    stop.addEventListener("abort", done);
  });
}

import { ENDED, get, hooks, send, words } from "../src/api/client.ts";
import { forget, rights } from "../src/api/session.ts";
import { follow } from "../src/api/stream.ts";
import { deepEqual, equal, test } from "./check.ts";

const SILENCE = 45_000;

/** The page's world: answers of the service in turn; pauses that are over at once, and are counted. */
function world(...answers) {
  const observed = { pauses: [], ends: [], after: [] };
  hooks.signedOut = (why) => observed.ends.push(why);
  const setTimeout = (act, milliseconds) => {
    if (milliseconds < SILENCE) {
      observed.pauses.push(milliseconds);
      queueMicrotask(act);
    }
    return 0;
  };
  globalThis.window = { setTimeout, clearTimeout: () => {} };
  globalThis.fetch = async (_, options) => {
    observed.after.push(options.headers["Last-Event-ID"]);
    return answers.shift();
  };
  return observed;
}

const frames = (...events) => new Response(events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join(""));
const refused = (status, kind, detail) => new Response(JSON.stringify({ type: `urn:dynamo:problem:${kind}`, detail }), { status });
const nothing = { again: true, onEvent: () => {} };

test("the end of a session says why", async () => {
  const why = "the token has expired; log in again";
  const observed = world(frames(["unauthorized", { detail: why }]), refused(401, "unidentified", why), refused(401, "unidentified", why));
  await follow("/a", nothing, new AbortController().signal);
  await send("GET", "/a").catch(() => {});
  await send("GET", "/session").catch(() => {});
  deepEqual(observed.ends, [why, why]);
});

test("a person whose session is gone reads what to do, not the words for programs", async () => {
  const observed = world(refused(401, "unidentified", "send a bearer token, or start a session"));
  equal(words(await send("POST", "/a").catch((each) => each)), ENDED);
  deepEqual(observed.ends, [ENDED]);
});

test("a right that is lost does not end the session, whatever the names", async () => {
  const observed = world(frames(["unauthorized", { detail: "system:serviceaccount:token:ann may no longer list pods" }]));
  await follow("/a", nothing, new AbortController().signal);
  deepEqual(observed.ends, []);
});

test("a session that another tab has replaced is read again", async () => {
  const observed = world(refused(403, "csrf", "send the session's CSRF token as X-CSRF-Token"));
  let replaced = 0;
  hooks.replaced = () => (replaced += 1);
  const error = await send("POST", "/a").catch((each) => each);
  equal(words(error), "Another tab of this browser started a new session, which this tab now uses. Try again.");
  deepEqual([replaced, observed.ends], [1, []]);
});

test("a stream that only says why it ends is not opened again and again at once", async () => {
  const failing = () => frames(["error", { detail: "your rights cannot be asked for" }]);
  const stop = new AbortController();
  const observed = world(...Array.from({ length: 8 }, failing), frames(["unauthorized", { detail: "no" }]));
  await follow("/a", nothing, stop.signal);
  equal(observed.pauses.length, 8);
  equal(observed.pauses.at(-1) >= 7_500, true, String(observed.pauses));
});

/** Requests that are answered by no one, and end when they are aborted; timers of that length end at once. */
function silent(milliseconds) {
  const tries = [];
  globalThis.window = { setTimeout: (act, each) => (each === milliseconds && queueMicrotask(act), 0), clearTimeout: () => {} };
  globalThis.fetch = (path, { signal }) =>
    new Promise((_, reject) => {
      tries.push(String(path));
      const end = () => reject(signal.reason);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end);
    });
  return tries;
}

test("a request without an answer ends with words for it", async () => {
  silent(30_000);
  equal(words(await get("/a").catch((each) => each)), "The service did not answer within 30 seconds.");
});

test("a request ends with its element", async () => {
  silent(-1);
  const stop = new AbortController();
  const ended = get("/a", { signal: stop.signal }).catch((each) => each.name);
  stop.abort();
  equal(await ended, "AbortError");
  equal(await get("/a", { signal: stop.signal }).catch((each) => each.name), "AbortError");
});

test("a stream whose connection is taken, and not answered, is opened again", async () => {
  const tries = silent(SILENCE);
  const lines = [];
  const stop = new AbortController();
  await new Promise((resolve) => {
    void follow("/a", { ...nothing, onLine: (line, detail) => { lines.push([line, detail]); if (line === "broken") resolve(undefined); } }, stop.signal);
  });
  stop.abort();
  deepEqual([tries, lines], [["/api/v1/a"], [["connecting", ""], ["broken", "The service was silent for 45 seconds."]]]);
});

test("a stream that begins again does so without the event that is not known", async () => {
  const observed = world(frames(["resync", {}]), frames(["unauthorized", { detail: "no" }]));
  await follow("/a", { ...nothing, headers: { "Last-Event-ID": "old" } }, new AbortController().signal);
  deepEqual(observed.after, ["old", undefined]);
});

test("what had come already is not given to a reader that has gone on", async () => {
  world(frames(["ADDED", 1], ["ADDED", 2], ["unauthorized", { detail: "no" }]));
  const stop = new AbortController();
  const observed = [];
  await follow("/a", { again: true, onEvent: ({ data }) => { observed.push(data); stop.abort(); }, onLine: (line) => observed.push(line) }, stop.signal);
  deepEqual(observed, ["connecting", "live", "1"]);
  world(frames(["ADDED", 1]));
  const late = new AbortController();
  const following = follow("/a", { again: true, onEvent: () => observed.push("event"), onLine: (line) => observed.push(line) }, late.signal);
  late.abort();
  await following;
  deepEqual(observed, ["connecting", "live", "1", "connecting"]);
});

test("rights are asked for again after a minute, and after a failure", async () => {
  const answers = [{ logs: false }, { logs: true }, null, { logs: false }];
  let asked = 0;
  globalThis.window = { setTimeout: () => 0, clearTimeout: () => {} };
  globalThis.fetch = async () => {
    const answer = answers[asked++];
    return new Response(JSON.stringify(answer ?? { detail: "away" }), { status: answer ? 200 : 503, headers: { "Content-Type": "application/json" } });
  };
  const now = Date.now;
  let passed = 0;
  Date.now = () => now() + passed;
  try {
    forget();
    deepEqual([(await rights("a")).logs, (await rights("a")).logs, asked], [false, false, 1]);
    passed = 60_001;
    deepEqual([(await rights("a")).logs, asked], [true, 2]);
    passed = 120_002;
    equal(words(await rights("a").catch((error) => error)), "away");
    deepEqual([(await rights("a")).logs, asked], [false, 4]);
  } finally {
    Date.now = now;
    forget();
  }
});

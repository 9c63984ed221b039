import { hooks, send } from "../src/api/client.ts";
import { follow } from "../src/api/stream.ts";
import { deepEqual, equal, test } from "./check.ts";

const SILENCE = 45_000;

/** The page's world: answers of the service in turn; pauses that are over at once, and are counted. */
function world(...answers) {
  const seen = { pauses: [], ends: [], requests: [] };
  hooks.signedOut = (why) => seen.ends.push(why);
  const setTimeout = (act, milliseconds) => {
    if (milliseconds < SILENCE) {
      seen.pauses.push(milliseconds);
      queueMicrotask(act);
    }
    return 0;
  };
  globalThis.window = { setTimeout, clearTimeout: () => {} };
  globalThis.fetch = async (url, options) => {
    seen.requests.push(`${options.method} ${url}`);
    return answers.shift();
  };
  return seen;
}

const frames = (...events) => new Response(events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join(""));
const refused = (status, kind, detail) => new Response(JSON.stringify({ type: `urn:dynamo:problem:${kind}`, detail }), { status });
const nothing = { again: true, onEvent: () => {} };

test("the end of a session says why", async () => {
  const why = "the token has expired; log in again";
  const seen = world(frames(["unauthorized", { detail: why }]), refused(401, "unidentified", why), refused(401, "unidentified", why));
  await follow("/a", nothing, new AbortController().signal);
  await send("GET", "/a").catch(() => {});
  await send("GET", "/session").catch(() => {});
  deepEqual(seen.ends, [why, why]);
});

test("a right that is lost does not end the session, whatever the names", async () => {
  const seen = world(frames(["unauthorized", { detail: "system:serviceaccount:token:ann may no longer list pods" }]));
  await follow("/a", nothing, new AbortController().signal);
  deepEqual(seen.ends, []);
});

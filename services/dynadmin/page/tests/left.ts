import { carry, dropOthers, isFilled, leave, taken } from "../src/deploy/left.ts";
import { deepEqual, equal, test } from "./check.ts";

/** A tab with a storage, and a clock. */
function tab() {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  Object.defineProperty(globalThis, "sessionStorage", { value: storage, configurable: true });
  return kept;
}

const INTENT = { mode: "graph", name: "q", engine: { dtype: "fp8", env: { HF_TOKEN: "hf_secret" }, args: ["--api-key", "secret"] } };
const KEPT = [
  { pointer: "/spec/components/0/replicas", value: 3 },
  { pointer: "/spec/components/0/podTemplate/spec/containers/0/env/0/value", value: "secret" },
  { pointer: "/spec/components/0/podTemplate/spec/containers/0/livenessProbe/httpGet/httpHeaders/0/value", value: "Bearer secret" },
  { pointer: "/spec/components", value: [{ name: "a", podTemplate: { spec: { containers: [{ args: ["secret"] }] } } }] },
];

/** A page that was left, and loaded again: what it had in memory is gone. */
function back(left, user) {
  leave(left);
  carry();
  leave(null);
  return taken(user);
}

test("a form outlives a sign-in at the identity provider, without what may be a secret", () => {
  const storage = tab();
  leave({ intent: INTENT, kept: KEPT, user: "ann" });
  carry();
  equal(JSON.stringify([...storage.values()]).includes("secret"), false);
  leave(null);
  const { intent, kept, isPart } = taken("ann");
  deepEqual([intent, kept, isPart], [{ mode: "graph", name: "q", engine: { dtype: "fp8" } }, [KEPT[0]], true]);
  deepEqual([taken("ann"), storage.size], [null, 0]);
});

test("a form without any is whole", () => {
  tab();
  equal(back({ intent: { name: "q" }, kept: [], user: "ann" }, "ann").isPart, false);
});

test("a form is for the person who filled it in, and not for long", () => {
  const storage = tab();
  deepEqual([back({ intent: INTENT, kept: [], user: "ann" }, "bob"), storage.size], [null, 0]);
  leave({ intent: INTENT, kept: [], user: "ann" });
  carry();
  leave(null);
  const now = Date.now;
  Date.now = () => now() + 600_001;
  try {
    equal(taken("ann"), null);
  } finally {
    Date.now = now;
  }
});

test("a form that someone filled in would be lost with the page, but not with the sign-in", () => {
  tab();
  leave({ intent: { mode: "graph" }, kept: [], user: "ann" });
  equal(isFilled(), false);
  leave({ intent: INTENT, kept: [], user: "ann" });
  equal(isFilled(), true);
  carry();
  equal(isFilled(), false);
  dropOthers("ann");
  deepEqual(taken("ann").intent, INTENT);
  leave({ intent: INTENT, kept: [], user: "ann" });
  dropOthers("bob");
  deepEqual([isFilled(), taken("ann")], [false, null]);
});

test("a form is whole where the page was not left", () => {
  tab();
  leave({ intent: INTENT, kept: KEPT, user: "ann" });
  carry();
  deepEqual(taken("ann").intent, INTENT);
});

test("a browser that stores nothing has an empty form", () => {
  Object.defineProperty(globalThis, "sessionStorage", { get: () => { throw new Error("denied"); }, configurable: true });
  equal(back({ intent: INTENT, kept: KEPT, user: "ann" }, "ann"), null);
});

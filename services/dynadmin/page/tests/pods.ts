import { adviceOf, queryOf, selectionOf, unready, whyOf } from "../src/logic/pods.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

const pod = (name, more = {}) => ({ name, component: "w", phase: "Running", ready: false, node: "n", ip: "", gpus: 0, restarts: 0, containers: ["main"], created: "", message: "", ...more });

test("pods that are not ready are named, those with a reason first", () => {
  const all = [pod("c"), pod("b", { ready: true }), pod("d", { phase: "Succeeded" }), pod("a"), pod("z", { message: "main: CrashLoopBackOff back-off" })];
  deepEqual(unready(all).map((each) => each.name), ["z", "a", "c"]);
});

test("a pod that is not ready has a reason, and advice if the reason is known", () => {
  equal(whyOf(pod("a")), "It runs, but is not ready.");
  equal(whyOf(pod("a", { phase: "Pending" })), "Pending.");
  ok(adviceOf(pod("a", { message: "main: ImagePullBackOff Back-off pulling" })).startsWith("The image cannot be pulled"));
  ok(adviceOf(pod("a", { node: "", message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu" })).startsWith("No node fits the pod"));
  equal(adviceOf(pod("a", { message: "main: Surprise x" })), "");
});

test("the selection of logs is in the address", () => {
  for (const each of [{ component: "", pod: "", previous: false }, { component: "W", pod: "p-1", previous: true }]) deepEqual(selectionOf(queryOf(each)), each);
  equal(queryOf({ pod: "p-1" }), "pod=p-1");
});

import { advice, sentence } from "../src/logic/advice.ts";
import { age, count, figure, span } from "../src/logic/format.ts";
import { gpusOf, modelOf, objectiveOf, stateOf } from "../src/logic/kinds.ts";
import { equal, ok, test } from "./check.ts";

test("spans and figures as people read them", () => {
  equal(span(59), "59 s");
  equal(span(3600), "60 min");
  equal(span(86_400), "24 h");
  equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-03T00:00:00Z")), "2 d");
  equal(figure(1234.5), "1,235");
  equal(figure(16.666, "ms"), "16.7 ms");
  equal(figure(null), "–");
  equal(count(1, "pod"), "1 pod");
});

test("a condition that does not hold says what to do", () => {
  equal(advice("True", "X", ""), "");
  ok(advice("False", "ImagePullBackOff", "").includes("image"));
  ok(advice("False", "Rejected", "0/2 nodes are available: insufficient nvidia.com/gpu").includes("GPUs"));
  equal(sentence("Ready", "True"), "It is ready to serve.");
  ok(sentence("SomethingElse", "False").includes("something else"));
});

const graph = {
  metadata: { name: "g" },
  spec: {
    components: [
      { name: "F", type: "frontend", podTemplate: { spec: { containers: [{ name: "main" }] } } },
      {
        name: "W",
        replicas: 3,
        multinode: { nodeCount: 2 },
        podTemplate: { spec: { containers: [{ name: "main", args: ["--model", "a/b"], resources: { limits: { "nvidia.com/gpu": "4" } } }] } },
      },
    ],
  },
};

test("what a graph serves, and on how many GPUs", () => {
  equal(modelOf(graph), "a/b");
  equal(gpusOf(graph), 24);
});

test("states, and why", () => {
  equal(stateOf("deployments", { ...graph, status: { state: "successful" } }).tone, "good");
  const waiting = { state: "pending", conditions: [{ type: "Ready", status: "False", message: "no pods" }] };
  equal(stateOf("deployments", { ...graph, status: waiting }).why, "no pods");
  equal(stateOf("deployments", { metadata: { deletionTimestamp: "x" } }).text, "ending");
  equal(objectiveOf({ spec: { sla: { ttft: 200, itl: 20 } } }), "TTFT 200 ms, ITL 20 ms");
});

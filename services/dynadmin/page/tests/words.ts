import { judged } from "../src/logic/advice.ts";
import { age, count, figure, span } from "../src/logic/format.ts";
import { goesAlong, gpusOf, hardwareOf, modelOf, objectiveOf, stateOf } from "../src/logic/kinds.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

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

const condition = (type: string, status: string, reason: string, message = "") => judged({ type, status, reason, message });

test("a condition that does not hold says what to do", () => {
  deepEqual(condition("Ready", "True", "X", "m"), { tone: "good", sentence: "It is ready to serve.", message: "", advice: "", name: "Ready, X" });
  ok(condition("Ready", "False", "ImagePullBackOff").advice.includes("image"));
  ok(condition("Ready", "False", "Rejected", "0/2 nodes are available: insufficient nvidia.com/gpu").advice.includes("GPUs"));
  equal(condition("SpecGenerated", "True", "SpecGenerated").name, "SpecGenerated");
  ok(condition("SomethingElse", "False", "").sentence.includes("something else"));
});

test("what the planner lacks is not taken for what a container lacks", () => {
  const shown = condition("Planning", "False", "NoPlannerConfig", "annotation a names ConfigMap c, which does not exist");
  equal(shown.sentence, "The planner cannot set the replicas.");
  ok(shown.advice.includes("PlannerConfig"));
});

test("a promise at risk and a second writer are troubles, though their conditions are True", () => {
  const risk = condition("Planning", "True", "PromiseAtRisk", "12 GPUs are needed");
  deepEqual([risk.tone, risk.message], ["busy", "12 GPUs are needed"]);
  equal(condition("Conflict", "True", "SeveralWriters", "a and b take turns").tone, "busy");
  equal(condition("Conflict", "False", "OneWriter", "only the adapter").tone, "good");
  equal(condition("Ready", "Unknown", "X").tone, "idle");
});

test("the hardware of a request in words", () => {
  const planned = { gpuSku: "h100_sxm", totalGpus: 2, numGpusPerNode: 8, vramMb: 81559 };
  const observed = [{ gpuSku: "h100_sxm", totalGpus: 16, nodes: 2 }, { totalGpus: 1 }];
  deepEqual(hardwareOf({ metadata: { name: "r" }, status: { hardware: { planned, "found": observed, source: "nodeLabels" } } }), [
    ["Planned for", "h100_sxm, 2 GPUs at most, 8 on a node, 81559 MiB each"],
    ["On the cluster", "h100_sxm, 16 GPUs, on 2 nodes"],
    ["On the cluster", "unknown GPUs, 1 GPU"],
    ["Read from", "labels of nodes"],
  ]);
  deepEqual(hardwareOf({ metadata: { name: "r" } }), []);
});

test("a graph outlives the request that deployed it", () => ok(goesAlong("requests", { metadata: { name: "r" } }).includes("stays")));

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

import { judged, onceEach } from "../src/logic/advice.ts";
import { age, count, figure, moment, span } from "../src/logic/format.ts";
import { deployedBy, firstOf, goesAlong, gpusOf, gpuWords, hardwareOf, isDeletable, modelOf, objectiveOf, stateOf, togetherOf } from "../src/logic/kinds.ts";
import { sourceWords } from "../src/logic/points.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

test("spans and figures as people read them", () => {
  equal(span(59), "59 s");
  equal(span(3600), "60 min");
  equal(span(86_400), "24 h");
  equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-03T00:00:00Z")), "2 d");
  equal(figure(1234.5), "1,235");
  equal(figure(16.666, "ms"), "16.7 ms");
  equal(figure(null), "–");
  ok(/^2026-01-0\d \d\d:\d\d:00 \S+$/.test(moment("2026-01-02T00:00:00Z")));
  equal(count(1, "pod"), "1 pod");
});

const condition = (type: string, status: string, reason: string, message = "") => judged({ type, status, reason, message });

test("a condition that does not hold says what to do", () => {
  deepEqual(condition("Ready", "True", "X", "m"), { tone: "good", sentence: "It is ready to serve.", message: "", advice: "", name: "Ready, X" });
  ok(condition("Ready", "False", "ImagePullBackOff").advice.includes("image"));
  ok(condition("Ready", "False", "Rejected", "0/2 nodes are available: insufficient nvidia.com/gpu").advice.includes("GPUs"));
  const lacking = condition("Profiling", "False", "OutputMissing", "ConfigMap output has no final_config.yaml");
  deepEqual([lacking.tone, lacking.advice.includes("log of the profiling Job")], ["bad", true]);
  ok(condition("Profiling", "False", "SweepingPrefill", "simulating").advice.startsWith("Nothing to do"));
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
  deepEqual([risk.tone, risk.message], ["bad", "12 GPUs are needed"]);
  equal(condition("Conflict", "True", "SeveralWriters", "a and b take turns").tone, "bad");
  equal(condition("Conflict", "False", "OneWriter", "only the adapter").tone, "good");
  equal(condition("Ready", "Unknown", "X").tone, "idle");
});

test("a remark of profiling does not count as success, and what is not known is a sentence", () => {
  const remark = condition("NaiveConfiguration", "True", "NaiveConfiguration", "by memory alone");
  deepEqual([remark.tone, remark.sentence, remark.message, remark.advice], ["idle", "To consider: naive configuration.", "by memory alone", ""]);
  equal(condition("ObjectiveMet", "Unknown", "NotEstimated").sentence, "Not known yet: objective met.");
  const all = [
    { type: "ObjectiveMet", status: "False", reason: "ObjectiveNotMet", message: "m" },
    { type: "ObjectiveNotMet", status: "True", reason: "ObjectiveNotMet", message: "m" },
    { type: "SpecGenerated", status: "True", reason: "SpecGenerated" },
  ];
  deepEqual(onceEach(all).map((each) => each.type), ["ObjectiveMet", "SpecGenerated"]);
});

test("how many replicas run together is of Grove alone", () => {
  const kept = (minAvailable: number | undefined, componentKind: string): number => togetherOf({ minAvailable, status: { componentKind } });
  deepEqual([kept(2, "PodClique"), kept(3, "PodCliqueScalingGroup"), kept(undefined, "PodClique"), kept(2, "Deployment")], [2, 3, 1, 1]);
  const written = (value: object): number => togetherOf({ providerOverride: { value }, status: { componentKind: "PodClique" } });
  deepEqual([written({ spec: { minAvailable: 4 } }), written({ minAvailable: 5 }), written({})], [4, 5, 1]);
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

test("an adapter that no graph made can be deleted, and nothing goes along", () => {
  const stray = { metadata: { name: "a" } };
  const made = { metadata: { name: "a", ownerReferences: [{ kind: "DynamoGraphDeployment", name: "g" }] } };
  deepEqual([isDeletable("adapters", stray), isDeletable("adapters", made), isDeletable("requests", stray)], [true, false, true]);
  ok(goesAlong("adapters", stray).startsWith("Nothing"));
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

test("a leader and its workers may have pods of their own", () => {
  const template = (gpus: number, model: string): object => ({
    spec: { containers: [{ name: "main", args: ["--model", model], resources: { limits: { "nvidia.com/gpu": gpus } } }] },
  });
  const roles = [{ name: "leader", podTemplate: template(1, "a/b") }, { name: "worker", podTemplate: template(4, "c/d") }];
  const graph = { metadata: { name: "g" }, spec: { components: [{ name: "w", replicas: 2, multinode: { nodeCount: 3 }, roles }] } };
  deepEqual([gpusOf(graph), modelOf(graph)], [18, "a/b"]);
});

test("GPUs by any name and by claims, and nodes that are not counted in the spec", () => {
  const one = (component: unknown) => ({ metadata: { name: "g" }, spec: { components: [component] } });
  const pod = (resources: unknown, more = {}) => ({ podTemplate: { spec: { containers: [{ name: "main", resources }], ...more } } });
  equal(gpusOf(one({ multinode: {}, ...pod({ limits: { "nvidia.com/gpu": 4 } }) })), 8);
  equal(gpusOf(one(pod({ requests: { "amd.com/gpu": "2" } }))), 2);
  equal(gpusOf(one(pod({ limits: { "nvidia.com/mig-1g.10gb": "1", cpu: "8" } }))), 1);
  const claims = { resourceClaims: [{ name: "gpus", resourceClaimTemplateName: "four" }] };
  deepEqual([gpuWords(one(pod({}, claims))), gpuWords(one(pod({ limits: { "nvidia.com/gpu": 4 } }, claims))), gpuWords(one(pod({})))], ["by claims", "4 + claims", ""]);
});

test("what troubles an object shows in its state", () => {
  const graph = (reason: string) => ({ metadata: { name: "g" }, status: { state: "pending", conditions: [{ type: "Ready", status: "False", reason, message: "m" }] } });
  deepEqual(stateOf("deployments", graph("ImagePullBackOff")), { text: "pending: ImagePullBackOff", tone: "bad", why: "m" });
  for (const reason of ["NodeLost", "QuotaExceeded", "Evicted"]) equal(stateOf("deployments", graph(reason)).text, `pending: ${reason}`);
  equal(judged(graph("Evicted").status.conditions[0]).tone, "bad");
  deepEqual(stateOf("deployments", graph("some_resources_are_not_ready")), { text: "pending", tone: "busy", why: "m" });
  const model = { metadata: { name: "m" }, status: { conditions: [{ type: "EndpointsReady", status: "False", reason: "NoEndpoints", message: "m" }] } };
  equal(stateOf("models", model).text, "no endpoints");
  const adapter = (...conditions: unknown[]) => ({ metadata: { name: "a" }, spec: { replicas: 2 }, status: { replicas: 2, conditions } });
  equal(stateOf("adapters", adapter()).text, "settled");
  deepEqual(stateOf("adapters", adapter({ type: "Synced", status: "False", reason: "NotOwner", message: "m" })), { text: "not owner", tone: "bad", why: "m" });
  deepEqual(stateOf("adapters", adapter({ type: "Conflict", status: "True", reason: "SeveralWriters", message: "m" })), { text: "conflict", tone: "bad", why: "m" });
});

test("a request names its graph before the graph exists", () => {
  const request = (phase: string, conditions: unknown[] = []) => ({ metadata: { name: "r" }, status: { phase, dgdName: "g", conditions } });
  equal(deployedBy(request("Ready")), "");
  equal(deployedBy(request("Deployed")), "g");
  equal(deployedBy(request("Failed", [{ type: "DeploymentReady", status: "False" }])), "g");
  // Anything else would be another path of the API.
  equal(deployedBy({ ...request("Deployed"), status: { phase: "Deployed", dgdName: "../models/m" } }), "");
});

test("many names are cut to the first", () => {
  equal(firstOf(["a", "b", "c", "d"]), "a, b, c, d");
  equal(firstOf(["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
});

test("a request that waits for a person says so", () => {
  const request = (autoApply: boolean) => ({ metadata: { name: "r" }, spec: { autoApply }, status: { phase: "Ready", conditions: [] } });
  deepEqual(stateOf("requests", request(false)), { text: "Ready: waits for you", tone: "busy", why: "Choose one of its points and deploy it." });
  equal(stateOf("requests", request(true)).tone, "good");
});

test("where figures come from, in words", () => {
  equal(sourceWords("naive"), "Based on GPU memory only.");
  equal(sourceWords("other"), "Figures of other.");
  equal(sourceWords(""), "Figures of profiling.");
});

test("states, and why", () => {
  equal(stateOf("deployments", { ...graph, status: { state: "successful" } }).tone, "good");
  const waiting = { state: "pending", conditions: [{ type: "Ready", status: "False", message: "no pods" }] };
  equal(stateOf("deployments", { ...graph, status: waiting }).why, "no pods");
  const deleted = stateOf("deployments", { metadata: { deletionTimestamp: "x", finalizers: ["example.test/hold"] } });
  deepEqual([deleted.text, deleted.why.endsWith(": example.test/hold.")], ["deleting", true]);
  equal(objectiveOf({ spec: { sla: { ttft: 200, itl: 20 } } }), "TTFT 200 ms, ITL 20 ms");
});

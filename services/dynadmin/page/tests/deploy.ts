import { verdictOf } from "../src/logic/fit.ts";
import { applied, changes, offered } from "../src/logic/inverse.ts";
import { asGraph, frontOf, graphWords, isWhole, pointWords } from "../src/logic/points.ts";
import { get, set } from "../src/logic/pointer.ts";
import { meant, shown, tokenOf } from "../src/logic/text.ts";
import { fieldAt, FIELDS, isShown, typeOf } from "../src/deploy/fields.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

test("values by pointers; groups that become empty go", () => {
  const before = { a: { b: 1 } };
  deepEqual(set(before, "/a/c", 2), { a: { b: 1, c: 2 } });
  deepEqual(set(before, "/a/b", undefined), {});
  deepEqual(before, { a: { b: 1 } });
  equal(get({ a: { "x/y": 3 } }, "/a/x~1y"), 3);
});

const MANIFEST = {
  metadata: { name: "q" },
  spec: {
    labels: { team: "a" },
    components: [
      { name: "Frontend", replicas: 1 },
      { name: "worker", replicas: 2, pod: { args: ["--model", "m", "--own"], gpu: "1" } },
    ],
  },
};
const ORIGINS = {
  "/metadata/name": "/name",
  "/spec/labels": "/labels",
  "/spec/components/0/replicas": "/serving/replicas/frontend",
  "/spec/components/1/replicas": "/serving/replicas/worker",
  "/spec/components/1/pod/args": "/engine/args",
  "/spec/components/1/pod": "/hardware/gpusPerReplica",
};
const INTENT = { name: "q", labels: { team: "a" }, engine: { args: ["--own"] } };
const back = (change) => {
  const edited = structuredClone(MANIFEST);
  change(edited);
  return offered(INTENT, MANIFEST, edited, ORIGINS, typeOf);
};

test("an edited manifest fills in the form", () => {
  equal(back((each) => (each.spec.components[1].replicas = 5)).serving.replicas.worker, 5);
  equal(back((each) => (each.metadata.name = "p")).name, "p");
  deepEqual(back((each) => (each.spec.labels.tier = "x")).labels, { team: "a", tier: "x" });
  equal(back((each) => (each.spec.components[1].pod.gpu = "4")).hardware.gpusPerReplica, 4);
  deepEqual(back((each) => each.spec.components[1].pod.args.push("--more")).engine.args, ["--own", "--more"]);
});

test("what no field stands for leaves the form alone, and is kept", () => {
  deepEqual(back((each) => (each.spec.somethingElse = { a: 1 })), INTENT);
  deepEqual(back((each) => (each.spec.components[1].pod.args[1] = "other")), INTENT);
  const edited = structuredClone(MANIFEST);
  edited.spec.somethingElse = { a: 1 };
  delete edited.spec.labels;
  const kept = changes(MANIFEST, edited);
  deepEqual(applied(MANIFEST, kept), edited);
});

test("a token is read as it is pasted", () => {
  for (const text of ["eyJ.a.b", " eyJ.a\n  .b\n", "Bearer eyJ.a.b", "bearer eyJ.a.b "]) equal(tokenOf(text), "eyJ.a.b");
});

test("texts of fields and back", () => {
  deepEqual(meant("map", "a=b\nc=d=e"), { a: "b", c: "d=e" });
  equal(shown("map", { a: "b" }), "a=b");
  deepEqual(meant("list", " x \n\ny"), ["x", "y"]);
  equal(meant("number", "16.67"), 16.67);
  equal(meant("number", " "), undefined);
  equal(meant("boolean", "false"), false);
  deepEqual(meant("json", "- key: a"), [{ key: "a" }]);
  for (const [type, text] of [["number", "many"], ["map", "novalue"], ["json", "3"]]) {
    let refused = false;
    try {
      meant(type, text);
    } catch {
      refused = true;
    }
    ok(refused, text);
  }
});

test("each field has one place in the intent, and shows by mode", () => {
  equal(new Set(FIELDS.map((each) => each.pointer + each.modes)).size, FIELDS.length);
  const shownIn = (mode, pointer) => FIELDS.some((each) => each.pointer === pointer && isShown(each, { mode }));
  ok(shownIn("objective", "/objective/ttftMs") && !shownIn("graph", "/objective/ttftMs"));
  ok(shownIn("graph", "/serving/replicas/worker") && !shownIn("objective", "/serving/replicas/worker"));
  equal(fieldAt("/placement/tolerations/0/effect", { mode: "graph" }).pointer, "/placement/tolerations");
  equal(fieldAt("/nowhere", { mode: "graph" }), undefined);
});

const POINT = { backend: "sglang", parallelism: { agg: { replicas: 4, tp: 4, pp: 1, dp: 1, moe_ep: 1, gpus: 4, batch_size: 80 } } };

test("a point becomes a graph", () => {
  equal(pointWords(POINT), "sglang, 4 × tp4");
  const worker = { name: "worker", replicas: 2, podTemplate: { spec: { containers: [{ resources: { limits: { "nvidia.com/gpu": "4" } } }] } } };
  equal(graphWords({ spec: { backendFramework: "vllm", components: [{ name: "F", type: "frontend" }, worker] } }), "vllm, worker 2 × 4 GPUs");
  const graph = asGraph({ mode: "objective", name: "q", model: { name: "m" }, objective: { ttftMs: 1 } }, POINT);
  deepEqual(graph, {
    mode: "graph",
    name: "q",
    model: { name: "m" },
    backend: "sglang",
    serving: { mode: "aggregated", replicas: { worker: 4 } },
    hardware: { gpusPerReplica: 4 },
    parallelism: { tensor: 4 },
    engine: { maxBatchSize: 80 },
  });
  ok(isWhole(POINT));
  ok(!isWhole({ parallelism: { prefill: { tp: 1, gpus: 1 }, decode: { tp: 4, gpus: 4 } } }));
});

test("GPUs that are not known are not said to fit", () => {
  equal(verdictOf({ fits: true, uncounted: [] }), "fits");
  equal(verdictOf({ fits: true, uncounted: ["ResourceClaim a"] }), "fits without what is not counted");
  equal(verdictOf({ fits: false, uncounted: ["ResourceClaim a"] }), "does not fit");
});

test("the front leads past a selected point that others exceed", () => {
  const point = (tokensPerSecondPerUser: number, tokensPerSecondPerGPU: number) => ({ figures: { tokensPerSecondPerUser, tokensPerSecondPerGPU } });
  const [selected, fast, cheap, both] = [point(60, 444), point(90, 545), point(20, 1000), point(66, 677)];
  deepEqual(frontOf([selected, fast, cheap, both]), [cheap, both, fast]);
});

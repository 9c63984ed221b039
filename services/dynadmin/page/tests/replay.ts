import { changesOf, gpusOf, otherProblems, problemOf, rowsOf, trafficOf } from "../src/logic/replay.ts";
import { deepEqual, equal, test } from "./check.ts";

test("typed numbers become changes, and other texts become problems at their fields", () => {
  deepEqual(changesOf({ gpu_price: " 0.4 ", ttft_ms: "", other: "1" }), { changes: { gpu_price: 0.4 }, errors: [] });
  const { changes, errors } = changesOf({ gpu_price: "cheap", itl_ms: "20" });
  deepEqual(changes, { itl_ms: 20 });
  equal(problemOf(errors, "gpu_price"), "a number is needed");
  equal(problemOf(errors, "itl_ms"), "");
});

test("problems without a field of the form are kept", () => {
  const errors = [{ pointer: "/changes/ttft_ms", detail: "too small" }, { pointer: "/seconds", detail: "too large" }];
  equal(problemOf(errors, "ttft_ms"), "too small");
  deepEqual(otherProblems(errors), ["/seconds: too large"]);
});

const run = (more) => ({
  config: {}, requests: 100, attainment: 0.985, ttftAttainment: 1, itlAttainment: 0.985, ttftMean: 100, ttftP99: 250,
  itlMean: 12.5, itlP99: 20, gpuHours: 2, scalings: 3, replicas: [{ at: 0, ready: { decode: 2 }, gpus: 4 }, { at: 60, ready: { decode: 1 }, gpus: 2 }], ...more,
});
const REPLAY = {
  current: run({}),
  changed: run({ attainment: null, gpuHours: 1.25 }),
  traffic: [{ requestsPerSecond: 2, seconds: 60, isl: 1, osl: 1 }, { requestsPerSecond: 5, seconds: 30, isl: 1, osl: 1 }],
  profile: "", notes: [], seconds: 1,
};

test("both runs as a table and as plots", () => {
  deepEqual(rowsOf(REPLAY)[0], ["Within both times", "98.5 %", "–"]);
  deepEqual(rowsOf(REPLAY).find((each) => each[0] === "GPU-hours"), ["GPU-hours", "2", "1.25"]);
  deepEqual(gpusOf(REPLAY)[1].points, [{ at: 0, value: 4 }, { at: 60_000, value: 2 }]);
  deepEqual(trafficOf(REPLAY)[0].points, [{ at: 0, value: 2 }, { at: 60_000, value: 5 }, { at: 90_000, value: 5 }]);
});

import { capOf, figureOf, replicasOf, seriesOf, wordsOf } from "../src/logic/decisions.ts";
import { KEPT, LogLines } from "../src/logic/loglines.ts";
import { scale, ticks } from "../src/logic/scale.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

const line = (time, text, pod = "p") => ({ time, pod, container: "main", component: "worker", text });

test("a line that comes again after a break is kept once", () => {
  const log = new LogLines();
  ok(log.take(line("1", "a"), "1", false));
  ok(log.take(line("2", "b"), "2", false));
  ok(!log.take(line("2", "b"), "2", false));
  ok(log.take(line("2", "b", "other"), "2", false));
  equal(log.last, "2");
  equal(log.matching("").length, 3);
  // An id is more than a time: the last one counts, also of a line that is known.
  ok(!log.take(line("2", "b"), "2~A", false));
  equal(log.last, "2~A");
  ok(log.take(line("1", "older", "slow"), "2~9", false));
  equal(log.last, "2~9");
  equal(log.matching("OTHER").length, 1);
});

test("old lines go", () => {
  const log = new LogLines();
  for (let index = 0; index < KEPT * 2; index++) log.take(line(String(index).padStart(9, "0"), "x"), "", false);
  ok(log.matching("").length <= KEPT);
});

const decision = (time, more) => ({
  id: time, time, event: "planned", reason: "", message: "", policy: "", advisory: false, command: "",
  replicas: {}, current: {}, inputs: {}, predictions: {}, missing: {}, alternatives: [], budgets: [], ...more,
});
const FIRST = decision("2026-01-01T00:00:00Z", { current: { decode: 2 }, replicas: { decode: 3 }, inputs: { requestsPerSecond: 10 } });
const SECOND = decision("2026-01-01T00:01:00Z", { event: "scale-refused", current: { decode: 3 }, replicas: { decode: 9 }, inputs: { requestsPerSecond: 20 }, budgets: [{ message: "8 GPUs in all" }] });

test("decisions as series and words", () => {
  deepEqual(seriesOf([FIRST, SECOND], "replicas")[0].points.map((each) => each.value), [3, 3]);
  equal(replicasOf(FIRST), "decode 2 to 3");
  equal(capOf(FIRST), "");
  equal(capOf(SECOND), "Capped by 8 GPUs in all");
});

test("the plots have what the planner reports, with one unit each", () => {
  const all = [
    decision("2026-01-01T00:00:00Z", {
      inputs: { requestsPerSecond: 10, "traffic.requests": 600, "forecast.rate_now": 10 },
      predictions: { requests_per_second: 12, decode_capacity_requests_per_second: 4, attainment_aim: 0.95, attainment_of_last_hour: 0.9, decode_share_within_target: 0.97 },
    }),
  ];
  deepEqual(seriesOf(all, "traffic").map((each) => [each.name, each.points[0].value]), [["observed", 10], ["forecast", 12]]);
  deepEqual(seriesOf(all, "attainment").map((each) => [each.name, each.points[0].value]), [["aim", 95], ["last hour", 90], ["decode, expected", 97]]);
});

test("figures of a decision have words and units", () => {
  deepEqual(figureOf("requestsPerSecond", 10), ["requests/s", "10"]);
  deepEqual(figureOf("startup_seconds.decode", 45), ["startup, decode", "45 s"]);
  deepEqual(figureOf("estimated_itl_ms", 18.345), ["estimated ITL", "18.3 ms"]);
  deepEqual(figureOf("decode_share_within_target", 0.97), ["decode share within target", "97 %"]);
  equal(wordsOf({ decode: 2, prefill: 1 }), "decode 2, prefill 1");
});

test("what held a decision is said in words", () => {
  equal(capOf(decision("2026-01-01T00:00:00Z", { reason: "hold_budget" })), "Capped: the GPU budget");
  equal(capOf(decision("2026-01-01T00:00:00Z", { reason: "hold_missing", missing: { forward_passes: "no_forward_passes" } })), "Without forward passes (no forward passes)");
});

test("axes", () => {
  const axis = scale([0, 100], 0, 200);
  ok(axis.place(100) < 200);
  ok(ticks(axis.least, axis.most).every((each) => each >= 0 && each <= axis.most));
  ok(ticks(0.001, 0.0042).length > 1);
});

import { capOf, replicasOf, seriesOf } from "../src/logic/decisions.ts";
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

test("axes", () => {
  const axis = scale([0, 100], 0, 200);
  ok(axis.place(100) < 200);
  ok(ticks(axis.least, axis.most).every((each) => each >= 0 && each <= axis.most));
  ok(ticks(0.001, 0.0042).length > 1);
});

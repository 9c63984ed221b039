import { backoff, Parser } from "../src/logic/sse.ts";
import { deepEqual, equal, ok, test } from "./check.ts";

test("events come whole, wherever the network cuts", () => {
  const text = 'id: 7-x\nevent: ADDED\ndata: {"a":1}\n\n: heartbeat\n\nretry: 2000\n\nevent: synced\ndata: {}\n\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new Parser();
    const events = [...parser.feed(text.slice(0, cut)), ...parser.feed(text.slice(cut))];
    deepEqual(events, [
      { event: "ADDED", data: '{"a":1}', id: "7-x" },
      { event: "synced", data: "{}", id: "" },
    ]);
  }
});

test("carriage returns and several lines of data", () => {
  deepEqual(new Parser().feed("event: log\r\ndata: a\r\ndata: b\r\n\r\n"), [{ event: "log", data: "a\nb", id: "" }]);
});

test("waits grow, are bounded, and differ", () => {
  equal(backoff(0, () => 0), 250);
  equal(backoff(0, () => 1), 500);
  equal(backoff(20, () => 1), 15_000);
  ok(backoff(20, () => 0) >= 7_500);
});

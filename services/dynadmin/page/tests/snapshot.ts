import { Snapshot } from "../src/logic/snapshot.ts";
import { deepEqual, equal, test } from "./check.ts";

test("what comes again is the latest, once", () => {
  const all = new Snapshot();
  all.opened(false);
  equal(all.put("a", 1), false);
  all.put("b", 1);
  all.whole();
  equal(all.put("a", 2), true);
  deepEqual([all.items, all.synced], [[1, 2], true]);
});

test("as many are kept as a page shows", () => {
  const all = new Snapshot(2);
  all.opened(false);
  for (const each of ["a", "b", "c"]) all.put(each, each);
  all.whole();
  all.put("b", "b again");
  all.put("d", "d");
  deepEqual(all.items, ["b again", "d"]);
});

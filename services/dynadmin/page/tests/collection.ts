import { Collection } from "../src/logic/collection.ts";
import { deepEqual, equal, test } from "./check.ts";

const object = (name, version) => ({ kind: "X", apiVersion: "v1", metadata: { name }, spec: { version } });
const shown = (all) => all.items.map((each) => `${each.metadata.name}${each.spec.version}`);

function begun() {
  const all = new Collection();
  all.opened(false);
  all.take("ADDED", object("b", 1));
  all.take("ADDED", object("a", 1));
  all.take("synced", {});
  return all;
}

test("what never existed was not deleted", () => {
  const all = new Collection();
  all.opened(false);
  all.take("synced", {});
  equal(all.gone, false);
  all.take("ADDED", object("a", 1));
  equal(all.gone, false);
  all.take("DELETED", object("a", 1));
  equal(all.gone, true);
  all.take("ADDED", object("a", 2));
  equal(all.gone, false);
});

test("nothing is shown before the first snapshot is complete", () => {
  const all = new Collection();
  all.opened(false);
  equal(all.take("ADDED", object("a", 1)), false);
  deepEqual(shown(all), []);
  equal(all.take("synced", {}), true);
  deepEqual(shown(all), ["a1"]);
});

test("a resumed stream adds to what is there, and doubles nothing", () => {
  const all = begun();
  all.opened(true);
  all.take("MODIFIED", object("a", 2));
  all.take("ADDED", object("a", 2));
  all.take("DELETED", object("b", 1));
  all.take("synced", {});
  deepEqual(shown(all), ["a2"]);
});

test("a stream that begins again replaces all, once it is whole", () => {
  const all = begun();
  all.opened(false);
  all.take("ADDED", object("c", 1));
  deepEqual(shown(all), ["a1", "b1"]);
  all.take("synced", {});
  deepEqual(shown(all), ["c1"]);
});

test("a stream that breaks during its first snapshot leaves what was shown", () => {
  const all = begun();
  all.opened(false);
  all.take("ADDED", object("c", 1));
  all.opened(false);
  all.take("ADDED", object("d", 1));
  all.take("synced", {});
  deepEqual(shown(all), ["d1"]);
});

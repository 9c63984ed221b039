import { begin, draftOf, drop, dropAll, keep, keepMessage, messageOf, unsaved } from "../src/logic/drafts.ts";
import { deepEqual, equal, test } from "./check.ts";

const draft = (text) => ({ text, original: "a: 1\n", etag: '"1"' });

/** Ann has changed two manifests. */
function begun() {
  begin("ann");
  dropAll();
  keep("/x", draft("a: 2\n"));
  keep("/y", draft("a: 3\n"));
}

test("a draft is kept for each object, until it is discarded", () => {
  begun();
  deepEqual([draftOf("/x").text, draftOf("/y").text, draftOf("/z"), unsaved()], ["a: 2\n", "a: 3\n", undefined, 2]);
  keep("/x", draft("a: 1\n"));
  deepEqual([draftOf("/x"), unsaved()], [undefined, 1]);
});

test("what was saved is dropped, and what was typed since then stays", () => {
  begun();
  drop("/x", "a: 2\n");
  keep("/y", draft("a: 4\n"));
  drop("/y", "a: 3\n");
  deepEqual([draftOf("/x"), draftOf("/y").text], [undefined, "a: 4\n"]);
  drop("/y");
  equal(unsaved(), 0);
});

test("drafts outlive a session that ends, and are not shown to another person", () => {
  begun();
  keepMessage("/x", "Hello");
  begin("ann");
  deepEqual([unsaved(), messageOf("/x"), messageOf("/y")], [2, "Hello", ""]);
  begin("bob");
  deepEqual([unsaved(), messageOf("/x")], [0, ""]);
});

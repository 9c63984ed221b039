import { choiceOf, chosen, ordered, orderOf, orders, queryOf, rowOf } from "../src/logic/rows.ts";
import { deepEqual, equal, test } from "./check.ts";

const HOUR = 3_600_000;
const FIRST = { filter: "", by: "Name", descending: false };

function graph(name, state, reason, hours, gpus) {
  const containers = [{ name: "main", resources: { limits: { "nvidia.com/gpu": String(gpus) } } }];
  return {
    metadata: { name, creationTimestamp: new Date(Date.UTC(2026, 0, 2) - hours * HOUR).toISOString() },
    spec: { backendFramework: "vllm", components: [{ name: "Worker", podTemplate: { spec: { containers } } }] },
    status: { state, conditions: [{ type: "Ready", status: state === "successful" ? "True" : "False", reason, message: "m" }] },
  };
}

const ROWS = [
  graph("graph-2", "successful", "X", 1, 8),
  graph("graph-10", "pending", "ImagePullBackOff", 30, 16),
  graph("graph-9", "pending", "some_resources_are_not_ready", 2, 2),
].map((each) => rowOf("deployments", each));
test("cards, which have no headings, can be in any order that headings offer", () => {
  const offered = orders("deployments");
  deepEqual(offered.slice(0, 3), [["Name", "Name"], ["-Name", "Name, descending"], ["State", "State"]]);
  for (const [order] of offered) equal(orderOf(ordered(FIRST, order)), order);
  deepEqual(names(ordered(FIRST, "-GPUs")), ["10", "2", "9"]);
});

const names = (choice) => chosen("deployments", ROWS, { ...FIRST, ...choice }).map((each) => each.object.metadata.name.replace("graph-", ""));

test("rows are in the order of any column, numbers by their size and trouble first", () => {
  deepEqual(names({}), ["2", "9", "10"]);
  deepEqual(names({ by: "Name", descending: true }), ["10", "9", "2"]);
  deepEqual(names({ by: "State" }), ["10", "9", "2"]);
  deepEqual(names({ by: "GPUs" }), ["9", "2", "10"]);
  deepEqual(names({ by: "Age" }), ["2", "9", "10"]);
  // Equal ones are in the order of their names; a column that does not exist stands for the name.
  deepEqual(names({ by: "Engine", descending: true }), ["2", "9", "10"]);
  deepEqual(names({ by: "Rubbish" }), ["2", "9", "10"]);
});

test("a filter takes names, states and columns, in any case", () => {
  deepEqual([names({ filter: "GRAPH-1" }), names({ filter: "imagepull" }), names({ filter: "nothing" })], [["10"], ["10"], []]);
});

test("what is made of an object is made once, and again of the next version", () => {
  const object = graph("a", "pending", "X", 1, 1);
  equal(rowOf("deployments", object), rowOf("deployments", object));
  equal(rowOf("deployments", { ...object, status: { state: "failed" } }).state.text, "failed");
});

test("a choice is kept in the address", () => {
  equal(queryOf(FIRST), "");
  for (const choice of [FIRST, { filter: "a b/ü?", by: "State", descending: true }, { ...FIRST, descending: true }]) deepEqual(choiceOf(queryOf(choice)), choice);
  deepEqual(choiceOf("sort="), FIRST);
});

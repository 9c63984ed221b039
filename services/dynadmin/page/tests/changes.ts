import { writerOf } from "../src/logic/changes.ts";
import { deepEqual, test } from "./check.ts";

test("writers have the names that users know", () => {
  deepEqual(["dynadmin/ann", "dynamo-scaler", "kubectl-edit"].map(writerOf), ["ann", "the platform (dynamo-scaler)", "kubectl-edit"]);
});

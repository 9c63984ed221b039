import { fieldsOf, writerOf } from "../src/logic/changes.ts";
import { deepEqual, test } from "./check.ts";

test("writers have the names that users know, and fields are those that a user chose", () => {
  deepEqual(["dynadmin/ann", "dynamo-scaler", "kubectl-edit"].map(writerOf), ["ann", "the platform (dynamo-scaler)", "kubectl-edit"]);
  const copy = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration";
  deepEqual([fieldsOf([copy, "spec.model"]), fieldsOf([copy])], [["spec.model"], [copy]]);
});

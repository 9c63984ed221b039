import { keepRoles } from "../src/logic/roles.ts";
import { deepEqual, test } from "./check.ts";

test("parts of a table say what they are", () => {
  const said = [];
  const part = (tagName, scope = null) => ({ tagName, getAttribute: () => scope, setAttribute: (_, role) => said.push(role) });
  const all = [part("TABLE"), part("THEAD"), part("TR"), part("TH", "col"), part("TBODY"), part("TR"), part("TH", "row"), part("TD")];
  keepRoles({ querySelectorAll: () => all });
  deepEqual(said, ["table", "rowgroup", "row", "columnheader", "rowgroup", "row", "rowheader", "cell"]);
});

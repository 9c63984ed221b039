// Tables that small screens show as cards stay tables for screen readers: browsers drop the table roles with another `display`.

const ROLES: Record<string, string> = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
const PARTS = ["table.rows", "table.rows :is(thead, tbody, tr, th, td)"].map((each) => `${each}:not([role])`).join();

/** Set the roles of all parts of a table explicitly, independent of styles. */
export function keepRoles(root: ParentNode): void {
  for (const each of root.querySelectorAll(PARTS))
    each.setAttribute("role", ROLES[each.tagName] ?? (each.getAttribute("scope") === "row" ? "rowheader" : "columnheader"));
}

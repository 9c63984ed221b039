// Tables that small screens show as cards stay tables for readers: browsers forget what a table is once it is displayed otherwise.

const ROLES: Record<string, string> = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
const PARTS = ["table.rows", "table.rows :is(thead, tbody, tr, th, td)"].map((each) => `${each}:not([role])`).join();

/** Say what each part of a table is, in words that no style takes away. */
export function keepRoles(root: ParentNode): void {
  for (const each of root.querySelectorAll(PARTS))
    each.setAttribute("role", ROLES[each.tagName] ?? (each.getAttribute("scope") === "row" ? "rowheader" : "columnheader"));
}

// Addresses of views: `#/NAMESPACE/COLLECTION/NAME/TAB`. A list has its filter and order as `?QUERY`, logs their selection. Pure.

export const COLLECTIONS = ["deployments", "requests", "models", "adapters"] as const;
export type Kind = (typeof COLLECTIONS)[number];

export interface Route {
  view: "home" | "deploy" | "list" | "detail";
  namespace: string;
  kind: Kind;
  name: string;
  tab: string;
  query: string;
}

const HOME: Route = { view: "home", namespace: "", kind: "deployments", name: "", tab: "", query: "" };

export function parse(hash: string): Route {
  const [place = "", ...more] = hash.replace(/^#\/?/, "").split("?");
  const parts = place.split("/").map(safe);
  const [namespace = "", second = "", name = "", tab = ""] = parts;
  if (!namespace) return HOME;
  if (second === "deploy") return { ...HOME, view: "deploy", namespace };
  const kind = COLLECTIONS.find((each) => each === second) ?? "deployments";
  return { view: name ? "detail" : "list", namespace, kind, name, tab, query: name && !tab ? "" : more.join("?") };
}

export function format(route: Partial<Route>): string {
  const { view = "list", namespace = "", kind = "deployments", name = "", tab = "", query = "" } = route;
  if (!namespace) return "#/";
  const rest = view === "deploy" ? ["deploy"] : [kind, name, name ? tab : ""];
  const place = `#/${[namespace, ...rest].filter(Boolean).map(encodeURIComponent).join("/")}`;
  return query && view !== "deploy" && (tab || !name) ? `${place}?${query}` : place;
}

/** A valid Kubernetes name; otherwise nothing, because the text would become another path of the API. */
export function safe(text: string): string {
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text) ? text : "";
}

// Icons as strokes, in the colour of the text. Decoration: the text next to an icon has the meaning.
import { html, svg, type TemplateResult } from "lit";

const PATHS: Record<string, string> = {
  menu: "M3 6h18M3 12h18M3 18h18",
  plus: "M12 5v14M5 12h14",
  deployments: "M5 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zm14 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 21a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5h4a3 3 0 0 1 3 3v1a3 3 0 0 0 3 3M7 19h4a3 3 0 0 0 3-3v-1a3 3 0 0 1 3-3",
  requests: "M12 21a9 9 0 1 1 9-9M12 17a5 5 0 1 1 5-5M12 12l8-8m0 0v4m0-4h-4",
  models: "M12 3l9 5-9 5-9-5 9-5zm-9 9l9 5 9-5M3 16l9 5 9-5",
  adapters: "M4 20V10m6 10V4m6 16v-7m4 7H2",
  theme: "M12 3a9 9 0 1 0 0 18V3z",
  out: "M10 4H5v16h5M15 8l4 4-4 4m4-4H9",
  restart: "M20 11A8 8 0 1 0 18 17M20 4v7h-7",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  check: "M5 12l5 5L20 7",
  wait: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  cross: "M6 6l12 12M18 6L6 18",
  arrow: "M9 6l6 6-6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
};

export function icon(name: string): TemplateResult {
  if (name === "logo")
    return html`<svg class="icon logo" viewBox="0 0 32 32" aria-hidden="true"><path d="M8 24V8h7.5c5 0 8.500 3.200 8.500 8s-3.500 8-8.500 8z" /><circle cx="15.500" cy="16" r="2.600" /></svg>`;
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${svg`<path d=${PATHS[name] ?? ""} />`}</svg>`;
}

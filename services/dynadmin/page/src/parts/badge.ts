// Small parts that many views use: states, lines of streams, copied texts.
import { html, nothing, type TemplateResult } from "lit";
import type { State } from "../logic/kinds.ts";
import { icon } from "./icons.ts";
import { say } from "./toasts.ts";
import type { Watched } from "./watched.ts";

export function badge(state: State): TemplateResult {
  return html`<span class="badge ${state.tone}" title=${state.why || nothing}>${state.text}</span>`;
}

/** Whether the displayed data is live. */
export function lineOf(watched: Watched): TemplateResult {
  const texts = { connecting: "connecting", live: "live", broken: "connection lost, trying again", ended: "not live" };
  const tone = { connecting: "idle", live: "good", broken: "bad", ended: "bad" }[watched.line];
  return html`<span class="line ${tone}" role="status">${texts[watched.line]}</span>`;
}

export function problemOf(text: string): TemplateResult | typeof nothing {
  return text ? html`<p class="notice bad" role="alert">${text}</p>` : nothing;
}

export function copying(text: string, what: string): TemplateResult {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      say(`${what} copied`);
    } catch {
      say("The browser does not allow copying; select the text instead", true);
    }
  };
  return html`<button class="button" @click=${copy}>${icon("copy")} Copy</button>`;
}

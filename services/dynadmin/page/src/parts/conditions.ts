// Conditions in words, and what to do about those that do not hold.
import { html, nothing, type TemplateResult } from "lit";
import type { Any, KubeObject } from "../api/client.ts";
import { judged, onceEach } from "../logic/advice.ts";
import { age } from "../logic/format.ts";
import type { Tone } from "../logic/kinds.ts";
import { icon } from "./icons.ts";

const ICONS: Record<Tone, string> = { good: "check", busy: "wait", bad: "cross", idle: "arrow" };

export function conditions(object: KubeObject): TemplateResult {
  const all: Any[] = object.status?.conditions ?? [];
  if (!all.length) return html`<p class="muted">No service has reported a status yet. This takes a second.</p>`;
  const now = Date.now();
  return html`<ul class="conditions">
    ${onceEach(all).map((each) => {
      const { tone, sentence, message, advice, name } = judged(each);
      return html`<li class=${tone}>
        ${icon(ICONS[tone])}
        <div>
          <strong>${sentence}</strong>
          ${message ? html`<p>${message}</p>` : nothing} ${advice ? html`<p class="advice">${advice}</p>` : nothing}
          <p class="muted">${name}, for ${age(each.lastTransitionTime, now)}</p>
        </div>
      </li>`;
    })}
  </ul>`;
}

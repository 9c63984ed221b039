// Conditions in words, and what to do about those that do not hold.
import { html, nothing, type TemplateResult } from "lit";
import type { Any, KubeObject } from "../api/client.ts";
import { advice, sentence } from "../logic/advice.ts";
import { age } from "../logic/format.ts";
import { icon } from "./icons.ts";

export function conditions(object: KubeObject): TemplateResult {
  const all: Any[] = object.status?.conditions ?? [];
  if (!all.length) return html`<p class="muted">No service has reported on it yet. This takes a second.</p>`;
  const now = Date.now();
  return html`<ul class="conditions">
    ${all.map((each) => {
      const todo = advice(each.status, each.reason, each.message ?? "");
      const tone = each.status === "True" ? "good" : each.status === "False" ? "busy" : "idle";
      return html`<li class=${tone}>
        ${icon(each.status === "True" ? "check" : "cross")}
        <div>
          <strong>${sentence(each.type, each.status)}</strong>
          ${each.message && each.status !== "True" ? html`<p>${each.message}</p>` : nothing}
          ${todo ? html`<p class="advice">${todo}</p>` : nothing}
          <p class="muted">${each.type}, ${each.reason}, for ${age(each.lastTransitionTime, now)}</p>
        </div>
      </li>`;
    })}
  </ul>`;
}

// Whether the GPUs are free now, by node, and which must be freed.
import { html, nothing, type TemplateResult } from "lit";
import type { Any } from "../api/client.ts";
import { verdictOf } from "../logic/fit.ts";
import { count } from "../logic/format.ts";

export function fitting(gpus: Any): TemplateResult | typeof nothing {
  if (!gpus) return nothing;
  const used = (name: string): number => gpus.placed.filter((each: Any) => each.node === name).reduce((sum: number, each: Any) => sum + each.gpus, 0);
  return html`<section class="card">
    <h2>GPUs now</h2>
    <p>
      <span class="badge ${!gpus.fits ? "bad" : gpus.uncounted.length ? "busy" : "good"}">${verdictOf(gpus)}</span>
      ${count(gpus.needed, "GPU")} needed, ${gpus.free} free${gpus.exact || gpus.uncounted.length ? "" : ", of the pods that you may see"}
    </p>
    ${gpus.uncounted.length ? html`<p class="notice">Not counted, because their GPUs are unknown: ${gpus.uncounted.join("; ")}.</p>` : nothing}
    ${gpus.nodes.length
      ? html`<ul class="nodes">
          ${gpus.nodes.map((node: Any) => {
            const takes = used(node.name);
            const cells = Array.from({ length: Math.min(node.total, 16) }, (_, index) => {
              const taken = node.total - node.free;
              return index < taken ? "taken" : index < taken + takes ? "mine" : "free";
            });
            return html`<li>
              <span>${node.name} <span class="muted">${node.product}${node.schedulable ? "" : ", not schedulable"}${node.taints.length ? `, ${node.taints.join(", ")}` : ""}</span></span>
              <span class="cells" role="img" aria-label=${`${node.total - node.free} taken, ${takes} for this, ${node.free - takes} left`}>${cells.map((each) => html`<i class=${each}></i>`)}</span>
            </li>`;
          })}
        </ul>`
      : nothing}
    ${gpus.missing.map(
      (each: Any) => html`<p class="notice bad">${each.component}: ${count(each.pods, "pod")} with ${count(each.gpus, "GPU")} would wait. ${each.why}.
        ${each.free?.length ? `Free GPUs on ${each.free.slice(0, 4).join(", ")}.` : ""}</p>`,
    )}
  </section>`;
}

// The first tab of each kind: state in words, components, and figures.
import { html, nothing, type TemplateResult } from "lit";
import type { Any, KubeObject } from "../api/client.ts";
import { count, figure, moment, spaced } from "../logic/format.ts";
import { deployedBy, gpuWords, hardwareOf, modelOf, objectiveOf } from "../logic/kinds.ts";
import { format, type Kind } from "../logic/route.ts";
import { conditions } from "../parts/conditions.ts";
import "../parts/changes.ts";
import "../parts/pods.ts";
import "../parts/replicas.ts";
import "../parts/tree.ts";

type May = (verb: string) => boolean;

/** An object in one line. */
export function facts(kind: Kind, object: KubeObject): string {
  const spec: Any = object.spec ?? {};
  if (kind === "deployments") return [modelOf(object), spec.backendFramework, gpusText(object)].filter(Boolean).join(", ");
  if (kind === "requests") return [spec.model, objectiveOf(object)].join(", ");
  if (kind === "models") return [spec.modelType ?? "base", spec.modelName, spec.baseModelName ? `on ${spec.baseModelName}` : ""].filter(Boolean).join(" ");
  return `${spec.dgdRef?.componentName ?? ""} of ${spec.dgdRef?.name ?? ""}`;
}

function gpusText(graph: KubeObject): string {
  const text = gpuWords(graph);
  return /^\d+$/.test(text) ? count(Number(text), "GPU") : text && `GPUs ${text}`;
}

export function overview(kind: Kind, object: KubeObject, path: string, may: May, namespace: string): TemplateResult {
  // The graph outlives the request, so it has no owner reference to the request.
  const graph: string = kind === "requests" ? deployedBy(object) : "";
  return html`<div class="columns">
    <section class="card ${kind === "deployments" ? "wide" : ""}"><h2>State</h2>${conditions(object)}${progress(object)}</section>
    ${kind === "deployments" ? html`<dyn-pods class="wide" .path=${path} .graph=${object}></dyn-pods>` : nothing}
    ${kind === "requests" ? steps(object, namespace) : nothing} ${kind === "models" ? endpoints(object) : nothing}
    ${kind === "adapters" ? adapter(object, namespace) : nothing}
    ${kind === "deployments"
      ? html`<section class="card wide"><h2>Components</h2><dyn-replicas .path=${path} .graph=${object} .may=${may("patch")}></dyn-replicas></section>`
      : nothing}
    <dyn-changes class="wide" .path=${path} .object=${object}></dyn-changes>
    <section class="card wide"><h2>Components and objects</h2>
      <dyn-tree .path=${path} .object=${object}></dyn-tree>${graph ? html`<dyn-tree .path=${`/namespaces/${namespace}/deployments/${graph}`} .object=${object} .second=${true}></dyn-tree>` : nothing}
    </section>
  </div>`;
}

/** Progress of a roll-out and a restart. */
function progress(object: KubeObject): TemplateResult | typeof nothing {
  const { rollingUpdate, restart } = object.status ?? {};
  const lines: TemplateResult[] = [];
  if (rollingUpdate?.phase)
    lines.push(html`<dt>Roll-out</dt><dd>${spaced(rollingUpdate.phase)}${rollingUpdate.updatedComponents?.length ? `: ${rollingUpdate.updatedComponents.join(", ")}` : ""}</dd>`);
  if (restart?.phase) lines.push(html`<dt>Restart</dt><dd>${spaced(restart.phase)}${restart.inProgress?.length ? `: ${restart.inProgress.join(", ")}` : ""}</dd>`);
  return lines.length ? html`<dl class="facts">${lines}</dl>` : nothing;
}

const STEPS = ["Pending", "Profiling", "Ready", "Deploying", "Deployed"];

function steps(request: KubeObject, namespace: string): TemplateResult {
  const status: Any = request.status ?? {};
  const phase: string = status.phase ?? "Pending";
  // A failed request has no current step.
  const all = STEPS.includes(phase) ? STEPS : [phase];
  const at = all.indexOf(phase);
  const graph = deployedBy(request);
  const waits = phase === "Ready" && request.spec?.autoApply === false;
  return html`<section class="card">
    <h2>Progress</h2>
    ${waits ? html`<p class="notice">The request waits for you: <a href=${format({ namespace, kind: "requests", name: request.metadata.name, tab: "points" })}>choose a point and deploy it</a>.</p>` : nothing}
    <ol class="steps">
      ${all.map((step, index) => html`<li class=${index < at ? "past" : index === at ? "here" : ""} aria-current=${index === at ? "step" : nothing}>${step}</li>`)}
    </ol>
    <dl class="facts">
      ${status.profilingPhase ? html`<dt>Profiling</dt><dd>${spaced(status.profilingPhase)}</dd>` : nothing}
      ${status.profilingJobName ? html`<dt>Job</dt><dd>${status.profilingJobName}</dd>` : nothing}
      ${hardwareOf(request).map(([title, text]) => html`<dt>${title}</dt><dd>${text}</dd>`)}
      ${graph ? html`<dt>Graph</dt><dd><a href=${format({ namespace, kind: "deployments", name: graph })}>${graph}</a></dd>` : nothing}
    </dl>
  </section>`;
}

function endpoints(model: KubeObject): TemplateResult {
  const all: Any[] = model.status?.endpoints ?? [];
  return html`<section class="card"><h2>Endpoints</h2>
    ${all.length
      ? html`<ul class="plain">${all.map((each) => html`<li><span class="dot ${each.ready ? "good" : "busy"}" aria-hidden="true"></span> ${each.podName || each.address} <span class="muted">${each.ready ? "serves it" : "does not serve it yet"}</span></li>`)}</ul>`
      : html`<p class="muted">There is no endpoint.</p>`}
  </section>`;
}

function adapter(object: KubeObject, namespace: string): TemplateResult {
  const { spec, status } = object as Any;
  return html`<section class="card"><h2>Replicas</h2>
    <dl class="facts">
      <dt>Desired</dt><dd>${figure(spec?.replicas)}</dd>
      <dt>Running</dt><dd>${figure(status?.replicas)}</dd>
      <dt>Scaled last</dt><dd>${moment(status?.lastScaleTime) || "never"}</dd>
      <dt>Graph</dt><dd><a href=${format({ namespace, kind: "deployments", name: spec?.dgdRef?.name ?? "" })}>${spec?.dgdRef?.name}</a></dd>
    </dl>
  </section>`;
}

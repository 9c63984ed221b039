// The points of a request's profiling result, and the deployment of a point.
import { html, nothing, type TemplateResult } from "lit";
import { call, get, passes, words, type KubeObject, type Schemas } from "../api/client.ts";
import { spaced } from "../logic/format.ts";
import { format } from "../logic/route.ts";
import { graphWords, pointWords, sourceWords } from "../logic/points.ts";
import type { Point } from "../deploy/pareto.ts";
import { ask } from "./dialog.ts";
import { Part, properties, state } from "./part.ts";
import { say } from "./toasts.ts";
import "../deploy/pareto.ts";

/** Time until a retry if the points could not be read, milliseconds. */
const AGAIN = 5000;

class Points extends Part {
  static override properties = { ...properties("path", "request", "may"), ...state("loaded", "problem", "chosen") };
  path = "";
  request!: KubeObject;
  may = false;
  private loaded: Schemas["Candidates"] | null = null;
  private problem = "";
  private chosen = 0;
  private round = 0;

  override willUpdate(changed: Map<string, unknown>): void {
    const phase = (changed.get("request") as KubeObject | undefined)?.status?.phase;
    if (changed.has("path") || (changed.has("request") && phase !== this.request.status?.phase)) void this.refresh();
  }

  private async refresh(): Promise<void> {
    const { stop } = this;
    const round = ++this.round;
    try {
      const loaded = await get<Schemas["Candidates"]>(`${this.path}/candidates`, { signal: stop });
      // The answer may belong to an earlier phase.
      if (round === this.round) [this.loaded, this.problem] = [loaded, ""];
    } catch (error) {
      if (stop.aborted || round !== this.round) return;
      this.problem = words(error);
      if (passes(error)) window.setTimeout(() => stop.aborted || void this.refresh(), AGAIN);
    }
  }

  override render(): TemplateResult {
    if (!this.loaded) return html`<p class="muted" role="status">${this.problem || "Loading"}</p>`;
    const { items, phase, source } = this.loaded;
    if (!items.length) return html`<p class="card muted">Profiling has no result yet; the request is ${spaced(phase)}.</p>`;
    const points: Point[] = items.map((each) => ({
      number: each.point,
      title: each.figures.parallelism ? pointWords(each.figures) : graphWords(each.config),
      figures: each.figures,
      selected: each.selected,
    }));
    return html`<section class="card">
      <h2>Results of profiling</h2>
      ${this.problem ? html`<p class="notice bad" role="status">These points may be outdated: ${this.problem}</p>` : nothing}
      <p class="help">${sourceWords(source)} Deploying another point changes the graph of this request.</p>
      ${this.may ? nothing : html`<p class="notice">You may not create graphs in this namespace: you can read the points, but not deploy them.</p>`}
      <dyn-pareto .points=${points} .chosen=${this.chosen} .act=${this.may ? "Deploy this point" : ""}
        @choose=${(event: CustomEvent<Point>) => (this.chosen = event.detail.number)} @act=${(event: CustomEvent<Point>) => void this.promote(event.detail)}></dyn-pareto>
    </section>`;
  }

  private async promote(point: Point): Promise<void> {
    let name = "";
    const run = async (): Promise<void> => {
      const { body } = await call<KubeObject>("POST", `${this.path}/promote`, { body: { point: point.number } });
      name = body.metadata.name;
    };
    const body = html`<p>Point ${point.number}: ${point.title}. If the request already has a graph, the graph changes to this point, and its pods are replaced.</p>`;
    if (!(await ask({ title: "Deploy this point?", body, act: "Deploy", run }))) return;
    say(`${name} is being deployed`);
    location.hash = format({ namespace: this.request.metadata.namespace, kind: "deployments", name });
  }
}

customElements.define("dyn-points", Points);

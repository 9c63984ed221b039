// The estimate of an intent: streamed while the user fills in the form, and restarted when the form changes.
import { html, nothing, type TemplateResult } from "lit";
import { passes, words, type Any } from "../api/client.ts";
import { follow } from "../api/stream.ts";
import { figure } from "../logic/format.ts";
import { pointWords } from "../logic/points.ts";
import { same } from "../logic/pointer.ts";
import { Part, properties, state } from "../parts/part.ts";
import type { Point } from "./pareto.ts";
import "./pareto.ts";

/** Debounce of typing, milliseconds: the simulation takes seconds of processor time. */
const PAUSE = 1200;
/** Time until a retry if an estimate was refused for now, milliseconds. */
const AGAIN = 5000;
/** Fields that do not affect the simulation. */
const FREE = ["name", "labels", "annotations", "images", "placement", "compilationCache"];

class Estimate extends Part {
  static override properties = { ...properties("namespace", "intent"), ...state("outcome", "progress", "problem", "busy", "chosen") };
  namespace = "";
  /** A valid intent, or null while the form is incomplete. */
  intent: Any = null;
  private asked: Any = null;
  private outcome: Any = null;
  private progress = "";
  private problem = "";
  private busy = false;
  private chosen = 0;
  private timer = 0;

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    // A pending start would continue without the element.
    window.clearTimeout(this.timer);
  }

  override updated(changed: Map<string, unknown>): void {
    if (!changed.has("intent")) return;
    if (!this.intent) {
      this.restart();
      window.clearTimeout(this.timer);
      [this.asked, this.outcome, this.problem, this.busy] = [null, null, "", false];
      return;
    }
    const desired = Object.fromEntries(Object.entries(this.intent).filter(([key]) => !FREE.includes(key)));
    if (same(desired, this.asked)) return;
    this.asked = desired;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), PAUSE);
  }

  private async ask(): Promise<void> {
    this.restart();
    const stop = this.stop;
    [this.busy, this.problem, this.progress, this.chosen] = [true, "", "asking", 0];
    let ended = false;
    try {
      await follow(
        `/namespaces/${this.namespace}/estimate`,
        {
          method: "POST",
          body: this.intent,
          again: false,
          onEvent: ({ event, data }) => {
            const read: Any = JSON.parse(data);
            if (event === "progress") this.progress = read.message;
            else if (event === "estimate") this.outcome = read;
            else if (event === "end") ended = true;
            else if (["failed", "error", "unauthorized"].includes(event)) [this.problem, this.outcome] = [read.detail, null];
          },
        },
        stop,
      );
    } catch (error) {
      if (stop.aborted) return;
      [this.problem, this.outcome] = [words(error), null];
      if (passes(error)) this.timer = window.setTimeout(() => void this.ask(), AGAIN);
    }
    if (stop.aborted) return;
    this.busy = false;
    if (!ended && !this.problem) this.problem = "The estimate was interrupted. Change the form to start a new estimate.";
  }

  override render(): TemplateResult {
    const figures = this.outcome?.selected;
    return html`<section class="card">
      <h2>Estimate</h2>
      ${figures
        ? html`<p class="strong">${pointWords(figures)}</p>
            <dl class="figures small">
              ${[
                ["TTFT", figure(figures.ttft, "ms")],
                ["ITL", figure(figures.itl, "ms")],
                ["GPUs", figure(figures.gpus)],
                ["requests/s", figure(figures.requestsPerSecond)],
              ].map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
            </dl>
            ${figures.meetsSLA === false ? html`<p class="notice bad">The deployment does not meet the target times. Allow more time or more GPUs.</p>` : nothing}
            ${this.outcome.source === "naive" ? html`<p class="muted">Based on GPU memory only${this.busy ? "; the simulation is running" : ""}.</p>` : nothing}
            ${this.outcome.pareto?.length ? this.front() : nothing}
            ${(this.outcome.notes ?? []).map((each: string) => html`<p class="help">${each}</p>`)}`
        : nothing}
      <p class="muted" role="status">${this.busy ? `In progress: ${this.progress}` : this.problem || (this.outcome ? "" : "Set a model, and the target times or GPUs.")}</p>
    </section>`;
  }

  private front(): TemplateResult {
    const { selected, pareto } = this.outcome;
    const points: Point[] = pareto.map((figures: Any, index: number) => ({
      number: index + 1,
      title: pointWords(figures),
      figures,
      selected: same(figures, selected),
    }));
    return html`<p class="help">No deployment is better in every respect than one of these ${points.length}:</p>
      <dyn-pareto .points=${points} .chosen=${this.chosen} .act=${"Fill in as a graph"}
        @choose=${(event: CustomEvent<Point>) => (this.chosen = event.detail.number)}
        @act=${(event: CustomEvent<Point>) => this.dispatchEvent(new CustomEvent("point", { detail: event.detail.figures }))}></dyn-pareto>`;
  }
}

customElements.define("dyn-estimate", Estimate);

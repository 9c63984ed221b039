// Replays the traffic of a graph with another price or other target times: a form, and both runs side by side. Changes nothing in the cluster.
import { html, nothing, type TemplateResult } from "lit";
import { ApiProblem, call, words, type Entry } from "../api/client.ts";
import { CHANGES, changesOf, gpusOf, otherProblems, problemOf, rowsOf, trafficOf, type Change, type Replay } from "../logic/replay.ts";
import { span } from "../logic/format.ts";
import { Part, properties, state } from "./part.ts";
import { timeline } from "./timeline.ts";

const SPANS: [seconds: number, words: string][] = [
  [1800, "the last 30 minutes"],
  [3600, "the last hour"],
  [21_600, "the last six hours"],
];
/** Times of a replay count from its start, in milliseconds. */
const elapsed = (at: number): string => span(at / 1000);
const MORE = "The table lists all figures.";

class ReplayForm extends Part {
  static override properties = { ...properties("path"), ...state("texts", "seconds", "errors", "problem", "busy", "outcome") };
  path = "";
  private texts: Record<string, string> = {};
  private seconds = 3600;
  private errors: Entry[] = [];
  private problem = "";
  private busy = false;
  private outcome: Replay | null = null;

  override render(): TemplateResult {
    return html`<section class="card">
      <h2>Replay with another price</h2>
      <p class="help">Simulates the traffic of the decisions with the current PlannerConfig, and with these changes. Nothing in the cluster changes.</p>
      <form @submit=${(event: Event) => void this.replay(event)}>
        <div class="fields">
          ${CHANGES.map((each) => this.field(each))}
          <div class="field"><label for="replay-seconds">Traffic of</label>
            <select id="replay-seconds" @change=${(event: Event) => (this.seconds = Number((event.target as HTMLSelectElement).value))}>
              ${SPANS.map(([seconds, text]) => html`<option value=${seconds} .selected=${seconds === this.seconds}>${text}</option>`)}
            </select></div>
        </div>
        <div class="actions"><button class="button accent" ?disabled=${this.busy}>Replay</button>
          <span class="muted" role="status">${this.busy ? "Simulating" : ""}</span></div>
      </form>
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      ${this.outcome ? this.result(this.outcome) : nothing}
    </section>`;
  }

  private field(each: Change): TemplateResult {
    const id = `replay-${each.name.replaceAll("_", "-")}`;
    const error = problemOf(this.errors, each.name);
    const described = [each.help ? `${id}-help` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ") || nothing;
    return html`<div class="field">
      <label for=${id}>${each.label}${each.unit ? html`<span class="muted"> (${each.unit})</span>` : nothing}</label>
      <input id=${id} name=${each.name} inputmode="decimal" autocomplete="off" placeholder="current" aria-invalid=${error ? "true" : "false"} aria-describedby=${described}
        .value=${this.texts[each.name] ?? ""} @input=${(event: Event) => (this.texts = { ...this.texts, [each.name]: (event.target as HTMLInputElement).value })} />
      ${each.help ? html`<p class="help" id=${`${id}-help`}>${each.help}</p>` : nothing}
      ${error ? html`<p class="error" id=${`${id}-error`}>${error}</p>` : nothing}
    </div>`;
  }

  private result(outcome: Replay): TemplateResult {
    return html`<table class="rows tight">
        <caption class="hidden">Both runs</caption>
        <thead><tr><th scope="col">Figure</th><th scope="col" class="number">Current</th><th scope="col" class="number">Changed</th></tr></thead>
        <tbody>${rowsOf(outcome).map(([name, current, changed]) => html`<tr><th scope="row">${name}</th><td class="number" data-title="Current">${current}</td><td class="number" data-title="Changed">${changed}</td></tr>`)}</tbody>
      </table>
      ${timeline("GPUs", gpusOf(outcome), true, MORE, elapsed)}
      ${timeline("Traffic", trafficOf(outcome), true, MORE, elapsed)}
      <p class="help">Profile of the engines: ${outcome.profile}.</p>
      ${outcome.notes.map((each) => html`<p class="help">${each}</p>`)}`;
  }

  private async replay(event: Event): Promise<void> {
    event.preventDefault();
    const { changes, errors } = changesOf(this.texts);
    [this.errors, this.problem] = [errors, ""];
    if (errors.length) return;
    this.restart();
    const stop = this.stop;
    this.busy = true;
    try {
      const { body } = await call<Replay>("POST", `${this.path}/replay`, { body: { changes, seconds: this.seconds }, signal: stop });
      this.outcome = body;
    } catch (error) {
      if (stop.aborted) return;
      this.outcome = null;
      this.errors = error instanceof ApiProblem ? error.errors : [];
      const others = otherProblems(this.errors);
      this.problem = this.errors.length ? others.join("; ") : words(error);
    } finally {
      if (!stop.aborted) {
        this.busy = false;
        this.goOnAt("button");
      }
    }
  }
}

customElements.define("dyn-replay", ReplayForm);

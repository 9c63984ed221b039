// Decisions of planner and scaler about a graph, with reasons: a timeline of replicas and traffic, and each decision in words.
import { html, nothing, type TemplateResult } from "lit";
import { words, type Any } from "../api/client.ts";
import { follow } from "../api/stream.ts";
import { axisTime, moment, spaced } from "../logic/format.ts";
import { capOf, figureOf, replicasOf, seriesOf, wordsOf, type Decision } from "../logic/decisions.ts";
import { Snapshot } from "../logic/snapshot.ts";
import { problemOf } from "./badge.ts";
import { Part, properties, state } from "./part.ts";
import { timeline } from "./timeline.ts";
import "./replay.ts";

/** Number of decisions that the page keeps; older ones are dropped. */
const KEPT = 2000;
const MORE = "The decisions below list all figures.";

class Planner extends Part {
  static override properties = { ...properties("path", "name"), ...state("problem") };
  path = "";
  name = "";
  private readonly decisions = new Snapshot<Decision>(KEPT);
  private problem = "";

  override connectedCallback(): void {
    super.connectedCallback();
    follow(
      `${this.path}/decisions`,
      {
        query: { watch: true },
        again: true,
        onOpen: (resumed) => this.decisions.opened(resumed),
        onEvent: ({ event, data, id }) => this.took(event, JSON.parse(data), id),
        onLine: (line, detail) => (this.problem = line === "live" ? "" : detail || this.problem),
      },
      this.stop,
    ).catch((error: unknown) => {
      this.problem = words(error);
    });
  }

  private took(event: string, data: Any, id: string): void {
    if (event === "decision") this.decisions.put(id, { ...data, id } as Decision);
    else if (event === "synced") this.decisions.whole();
    else if (event === "error" || event === "unauthorized") this.problem = data.detail;
    this.drawSoon();
  }

  override render(): TemplateResult {
    const all = this.decisions.items;
    if (!this.decisions.synced) return this.problem ? html`${problemOf(this.problem)}` : html`<p class="card muted" role="status">Loading</p>`;
    if (!all.length)
      return html`${problemOf(this.problem)}
        <div class="card empty"><p>No planner has decided anything about this graph.</p>
        <p class="muted">A planner follows traffic: give a request a planner, or a graph a PlannerConfig.</p></div>`;
    return html`${problemOf(this.problem)}
      ${this.timelines(all)}
      <section class="card"><h2>Decisions</h2><ol class="decisions">${all.slice(-100).reverse().map((each) => this.decision(each))}</ol></section>
      <dyn-replay .path=${this.path}></dyn-replay>`;
  }

  private timelines(all: Decision[]): TemplateResult | typeof nothing {
    const times = all.map((each) => Date.parse(each.time));
    const time = axisTime(Math.max(...times) - Math.min(...times));
    const plots = [
      timeline("Replicas", seriesOf(all, "replicas"), true, MORE, time),
      timeline("Traffic and forecast, requests per second", seriesOf(all, "traffic"), false, MORE, time),
      timeline("Requests within the target times, %", seriesOf(all, "attainment"), false, MORE, time),
    ].filter((each) => each !== nothing);
    // One decision gives only a point, not a line.
    return plots.length ? html`<section class="card"><h2>Time line</h2>${plots}</section>` : nothing;
  }

  private decision(each: Decision): TemplateResult {
    const cap = capOf(each);
    const change = replicasOf(each);
    const tone = each.event.includes("refused") ? "bad" : each.event.includes("held") ? "busy" : "good";
    return html`<li>
      <p><span class="badge ${tone}">${each.event.replaceAll("-", " ")}</span> <strong>${change}</strong> <span class="muted">${moment(each.time)}${each.policy ? `, ${each.policy}` : ""}${each.advisory ? ", as advice only" : ""}</span></p>
      <p>${each.message || each.reason}</p>
      ${cap ? html`<p class="advice">${cap}</p>` : nothing}
      ${Object.keys(each.inputs).length + each.alternatives.length
        ? html`<details><summary>Figures</summary>
            <dl class="facts">${Object.entries(each.inputs).map(([name, value]) => row(figureOf(name, value)))}
              ${Object.entries(each.predictions).map(([name, value]) => row(figureOf(name, value), ", predicted"))}
              ${Object.entries(each.missing).map(([name, why]) => row([spaced(name), `missing: ${spaced(why)}`]))}</dl>
            ${each.alternatives.length ? html`<ul class="plain">${each.alternatives.map((one) => html`<li>Not ${wordsOf(one.replicas) || "taken"}: ${one.reason.replaceAll("_", " ")}</li>`)}</ul>` : nothing}
          </details>`
        : nothing}
    </li>`;
  }
}

function row([label, text]: [label: string, text: string], more = ""): TemplateResult {
  return html`<dt>${label}${more}</dt><dd>${text}</dd>`;
}

customElements.define("dyn-planner", Planner);

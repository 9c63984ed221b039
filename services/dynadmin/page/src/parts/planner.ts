// What the planner and the scaler decided about a graph, and why: a time line of replicas and traffic, and each decision in words.
import { html, nothing, svg, type TemplateResult } from "lit";
import { words, type Any } from "../api/client.ts";
import { follow, type Line } from "../api/stream.ts";
import { figure, moment } from "../logic/format.ts";
import { capOf, ladder, replicasOf, seriesOf, type Decision, type Series } from "../logic/decisions.ts";
import { scale, ticks } from "../logic/scale.ts";
import { copying } from "./badge.ts";
import { Part, properties, state } from "./part.ts";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [900, 130, 56, 12, 10, 22];
/** Decisions that a page keeps; older ones go. */
const KEPT = 2000;

class Planner extends Part {
  static override properties = { ...properties("path", "name"), ...state("all", "line", "problem", "chosen") };
  path = "";
  name = "";
  private all: Decision[] = [];
  private line: Line = "connecting";
  private problem = "";
  private chosen = "";
  private fresh = false;

  override connectedCallback(): void {
    super.connectedCallback();
    follow(
      `${this.path}/decisions`,
      {
        query: { watch: true },
        again: true,
        onOpen: (resumed) => (this.fresh = !resumed),
        onEvent: ({ event, data, id }) => this.took(event, JSON.parse(data), id),
        onLine: (line, detail) => {
          this.line = line;
          this.problem = line === "live" ? "" : detail || this.problem;
        },
      },
      this.stop,
    ).catch((error: unknown) => {
      this.problem = words(error);
    });
  }

  private took(event: string, data: Any, id: string): void {
    if (event === "decision") {
      const kept = this.fresh ? [] : this.all;
      this.fresh = false;
      if (!kept.some((each) => each.id === id)) this.all = [...kept, { ...data, id } as Decision].slice(-KEPT);
    } else if (event === "synced" && this.fresh) {
      this.fresh = false;
      this.all = [];
    } else if (event === "error") this.problem = data.detail;
  }

  override render(): TemplateResult {
    if (!this.all.length)
      return html`${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
        <div class="card empty"><p>${this.line === "connecting" ? "Loading" : "No planner has decided anything about this graph."}</p>
        <p class="muted">A planner follows traffic: give a request a planner, or a graph a PlannerConfig.</p></div>`;
    const latest = [...this.all].reverse();
    return html`${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      <section class="card"><h2>Time line</h2>
        ${this.plot("Replicas", seriesOf(this.all, "replicas"), true)}
        ${this.plot("Traffic and forecast", seriesOf(this.all, "traffic"), false)}
        ${this.plot("Share of requests within their times", seriesOf(this.all, "attainment"), false)}
      </section>
      <section class="card"><h2>Decisions</h2><ol class="decisions">${latest.slice(0, 100).map((each) => this.decision(each))}</ol></section>
      <section class="card"><h2>With another price</h2>
        <p>Replay the traffic that was seen with the PlannerConfig changed to other objectives or prices; the cluster is not touched:</p>
        <div class="actions"><code>${this.replay}</code> ${copying(this.replay, "Command")}</div>
      </section>`;
  }

  private get replay(): string {
    return `dynamoctl plan replay --config ${this.name}-planner.yaml --profile PROFILE_FOLDER --trace ${ladder(this.all)}`;
  }

  private decision(each: Decision): TemplateResult {
    const cap = capOf(each);
    const change = replicasOf(each);
    const tone = each.event.includes("refused") ? "bad" : each.event.includes("held") ? "busy" : "good";
    return html`<li class=${each.id === this.chosen ? "chosen" : ""} id=${`decision-${each.id}`}>
      <p><span class="badge ${tone}">${each.event.replaceAll("-", " ")}</span> <strong>${change}</strong> <span class="muted">${moment(each.time)}${each.policy ? `, ${each.policy}` : ""}${each.advisory ? ", as advice only" : ""}</span></p>
      <p>${each.message || each.reason}</p>
      ${cap ? html`<p class="advice">${cap}</p>` : nothing}
      ${Object.keys(each.inputs).length + each.alternatives.length
        ? html`<details><summary>Figures</summary>
            <dl class="facts">${Object.entries({ ...each.inputs, ...prefixed(each.predictions) }).map(([name, value]) => html`<dt>${name}</dt><dd>${figure(value)}</dd>`)}
              ${Object.entries(each.missing).map(([name, why]) => html`<dt>${name}</dt><dd>missing: ${why}</dd>`)}</dl>
            ${each.alternatives.length ? html`<ul class="plain">${each.alternatives.map((one) => html`<li>Not ${JSON.stringify(one.replicas)}: ${one.reason}</li>`)}</ul>` : nothing}
          </details>`
        : nothing}
    </li>`;
  }

  private plot(title: string, all: Series[], stepped: boolean): TemplateResult | typeof nothing {
    const points = all.flatMap((each) => each.points);
    if (points.length < 2) return nothing;
    const x = spanOf(points.map((each) => each.at));
    const y = scale([0, ...points.map((each) => each.value)], HEIGHT - BOTTOM, TOP);
    const place = (each: { at: number; value: number }): string => `${x(each.at).toFixed(1)},${y.place(each.value).toFixed(1)}`;
    const line = (one: Series): string => one.points.map((each, index) => (stepped && index ? `${x(each.at).toFixed(1)},${y.place(one.points[index - 1]!.value).toFixed(1)} ` : "") + place(each)).join(" ");
    return html`<figure class="plot">
      <figcaption>${title} ${all.map((each, index) => html`<span class="key k${index}">${each.name}</span>`)}</figcaption>
      <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${`${title}: ${all.map((each) => `${each.name} is ${figure(each.points.at(-1)?.value)}`).join(", ")}. The decisions below have all figures.`}>
        ${ticks(y.least, y.most).map((value) => svg`<g class="tick"><line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y.place(value)} y2=${y.place(value)} /><text x=${LEFT - 8} y=${y.place(value) + 4} text-anchor="end">${figure(value)}</text></g>`)}
        ${all.map((each, index) => svg`<polyline class=${`series k${index}`} points=${line(each)} />`)}
      </svg>
    </figure>`;
  }
}

function spanOf(times: number[]): (at: number) => number {
  const [least, most] = [Math.min(...times), Math.max(...times)];
  return (at) => LEFT + ((at - least) / (most - least || 1)) * (WIDTH - LEFT - RIGHT);
}

function prefixed(predictions: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(predictions).map(([name, value]) => [`${name}, predicted`, value]));
}

customElements.define("dyn-planner", Planner);

// A live list of one kind of object in a namespace.
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { KubeObject } from "../api/client.ts";
import { age } from "../logic/format.ts";
import { type Column, KINDS, stateOf, type Tone } from "../logic/kinds.ts";
import { format, type Kind } from "../logic/route.ts";
import { badge, lineOf, problemOf } from "../parts/badge.ts";
import { Part, properties, state } from "../parts/part.ts";
import { Watched } from "../parts/watched.ts";

class List extends Part {
  static override properties = { ...properties("namespace", "kind"), ...state("search") };
  namespace = "";
  kind: Kind = "deployments";
  private search = "";
  private readonly watched = new Watched(this);

  override connectedCallback(): void {
    super.connectedCallback();
    // Ages grow without any change of an object.
    this.every(10_000, () => this.requestUpdate());
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("kind") || changed.has("namespace")) {
      this.search = "";
      document.title = `${KINDS[this.kind].title} in ${this.namespace} · Dynadmin`;
      this.watched.watch(`/namespaces/${this.namespace}/${this.kind}`);
    }
  }

  override render(): TemplateResult {
    const described = KINDS[this.kind];
    const all = this.watched.items;
    const lowered = this.search.toLowerCase();
    const shown = all.filter((each) => this.textOf(each).includes(lowered));
    return html`
      <header class="head">
        <div>
          <h1 tabindex="-1">${described.title}</h1>
          <p class="lead">${described.about}</p>
        </div>
        ${lineOf(this.watched)}
      </header>
      ${problemOf(this.watched.problem)} ${this.figures(all)}
      ${all.length
        ? html`<div class="tools">
            <input type="search" aria-label="Filter" placeholder="Filter by name, state or another column" .value=${this.search} @input=${(event: InputEvent) => (this.search = (event.target as HTMLInputElement).value)} />
            <span class="muted" role="status">${shown.length === all.length ? `${all.length} in all` : `${shown.length} of ${all.length}`}</span>
          </div>`
        : nothing}
      ${shown.length ? this.table(shown) : this.empty(all.length)}
    `;
  }

  private textOf(object: KubeObject): string {
    const values = KINDS[this.kind].columns.map((column) => column.value(object));
    return [object.metadata.name, stateOf(this.kind, object).text, ...values].join(" ").toLowerCase();
  }

  private figures(all: KubeObject[]): TemplateResult | typeof nothing {
    if (!all.length) return nothing;
    const counts: Record<Tone, number> = { good: 0, busy: 0, bad: 0, idle: 0 };
    for (const each of all) counts[stateOf(this.kind, each).tone] += 1;
    const words: [Tone, string][] = [
      ["good", "as they should be"],
      ["busy", "on their way"],
      ["bad", "in trouble"],
    ];
    return html`<dl class="figures">
      ${words.map(([tone, text]) => html`<div class=${tone}><dt>${text}</dt><dd>${counts[tone]}</dd></div>`)}
    </dl>`;
  }

  private table(shown: KubeObject[]): TemplateResult {
    const { columns } = KINDS[this.kind];
    const now = Date.now();
    return html`<div class="card flush">
      <table class="rows">
        <caption class="hidden">${KINDS[this.kind].title}</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            ${columns.map((each) => html`<th scope="col" class=${each.number ? "number" : ""}>${each.title}</th>`)}
            <th scope="col" class="number">Age</th>
          </tr>
        </thead>
        <tbody>
          ${repeat(
            shown,
            (each) => each.metadata.uid ?? each.metadata.name,
            (each) => html`<tr>
              <th scope="row"><a href=${format({ namespace: this.namespace, kind: this.kind, name: each.metadata.name })}>${each.metadata.name}</a></th>
              <td data-title="State">${badge(stateOf(this.kind, each))}</td>
              ${columns.map((column) => html`<td data-title=${column.title} class=${column.number ? "number" : (column.style ?? "")} title=${column.shown ? column.value(each) : nothing}>${this.cell(column, each)}</td>`)}
              <td data-title="Age" class="number">${age(each.metadata.creationTimestamp, now)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
  }

  private cell(column: Column, object: KubeObject): TemplateResult | string {
    const text = (column.shown ?? column.value)(object);
    if (!column.leadsTo || !text) return text;
    return html`<a href=${format({ namespace: this.namespace, kind: column.leadsTo, name: text })}>${text}</a>`;
  }

  private empty(total: number): TemplateResult | typeof nothing {
    if (total) return html`<p class="card muted">Nothing matches “${this.search}”.</p>`;
    if (!this.watched.synced) return this.watched.problem ? nothing : html`<p class="card muted" role="status">Loading</p>`;
    const canDeploy = this.kind === "deployments" || this.kind === "requests";
    return html`<div class="card empty">
      <p>There are no ${KINDS[this.kind].title.toLowerCase()} in ${this.namespace}.</p>
      <p class="muted">${KINDS[this.kind].origin}</p>
      ${canDeploy ? html`<a class="button accent" href=${format({ view: "deploy", namespace: this.namespace })}>Deploy a model</a>` : nothing}
    </div>`;
  }
}

customElements.define("dyn-list", List);

// A live list of one kind of object in a namespace.
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { age } from "../logic/format.ts";
import { type Column, KINDS, type Tone } from "../logic/kinds.ts";
import { AGE, choiceOf, chosen, NAME, ordered, orderOf, orders, queryOf, type Row, rowOf, STATE } from "../logic/rows.ts";
import { format, type Kind } from "../logic/route.ts";
import { badge, lineOf, problemOf } from "../parts/badge.ts";
import { Part, properties, state } from "../parts/part.ts";
import { Watched } from "../parts/watched.ts";

/** Number of rows rendered first, and of rows added later: a browser takes seconds to lay out thousands. */
const DRAWN = 200;

class List extends Part {
  static override properties = { ...properties("namespace", "kind", "query"), ...state("choice", "drawn") };
  namespace = "";
  kind: Kind = "deployments";
  /** Filter and order from the address. */
  query = "";
  private choice = choiceOf("");
  private drawn = DRAWN;
  private readonly watched = new Watched(this);

  override connectedCallback(): void {
    super.connectedCallback();
    // Ages grow without any change of an object.
    this.every(10_000, () => this.requestUpdate());
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("query") || changed.has("kind") || changed.has("namespace")) this.choice = choiceOf(this.query);
    if (changed.has("kind") || changed.has("namespace")) {
      this.drawn = DRAWN;
      document.title = `${KINDS[this.kind].title} in ${this.namespace} · Dynadmin`;
      this.watched.watch(`/namespaces/${this.namespace}/${this.kind}`);
    }
  }

  override render(): TemplateResult {
    const described = KINDS[this.kind];
    const all = this.watched.items.map((each) => rowOf(this.kind, each));
    const rows = chosen(this.kind, all, this.choice);
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
            <input type="search" aria-label="Filter" placeholder="Filter by name, state or another column" .value=${this.choice.filter}
              @input=${(event: InputEvent) => (this.choice = { ...this.choice, filter: (event.target as HTMLInputElement).value })} @change=${this.keep} />
            <label class="inline sorting">Sort by <select @change=${(event: Event) => this.sortBy((event.target as HTMLSelectElement).value)}>
              ${orders(this.kind).map(([order, text]) => html`<option value=${order} .selected=${order === orderOf(this.choice)}>${text}</option>`)}
            </select></label>
            <span class="muted" role="status">${rows.length === all.length ? `${all.length} in all` : `${rows.length} of ${all.length}`}</span>
          </div>`
        : nothing}
      ${rows.length ? this.table(rows) : this.empty(all.length)}
    `;
  }

  /** The address has the filter and order: they survive the back button, and a shared link has them. */
  private keep(): void {
    history.replaceState(null, "", format({ namespace: this.namespace, kind: this.kind, query: queryOf(this.choice) }));
  }

  private sort(by: string): void {
    this.sortBy(by === this.choice.by && !this.choice.descending ? `-${by}` : by);
  }

  private sortBy(order: string): void {
    this.choice = ordered(this.choice, order);
    this.keep();
  }

  private async more(): Promise<void> {
    const first = this.drawn;
    this.drawn += DRAWN;
    await this.updateComplete;
    this.querySelectorAll<HTMLElement>("tbody th a")[first]?.focus();
  }

  private figures(all: Row[]): TemplateResult | typeof nothing {
    if (!all.length) return nothing;
    const counts: Record<Tone, number> = { good: 0, busy: 0, bad: 0, idle: 0 };
    for (const each of all) counts[each.state.tone] += 1;
    const words: [Tone, string][] = [
      ["good", "ready"],
      ["busy", "in progress"],
      ["bad", "with problems"],
    ];
    return html`<dl class="figures">
      ${words.map(([tone, text]) => html`<div class=${tone}><dt>${text}</dt><dd>${counts[tone]}</dd></div>`)}
    </dl>`;
  }

  private table(rows: Row[]): TemplateResult {
    const { columns } = KINDS[this.kind];
    const now = Date.now();
    const rest = rows.length - this.drawn;
    return html`<div class="card flush">
      <table class="rows">
        <caption class="hidden">${KINDS[this.kind].title}</caption>
        <thead>
          <tr>
            ${this.heading(NAME)} ${this.heading(STATE)} ${columns.map((each) => this.heading(each.title, each.number))} ${this.heading(AGE, true)}
          </tr>
        </thead>
        <tbody>
          ${repeat(
            rows.slice(0, this.drawn),
            ({ object }) => object.metadata.uid ?? object.metadata.name,
            (row) => html`<tr>
              <th scope="row"><a href=${format({ namespace: this.namespace, kind: this.kind, name: row.object.metadata.name })}>${row.object.metadata.name}</a></th>
              <td data-title="State">${badge(row.state)}</td>
              ${columns.map((column, index) => html`<td data-title=${column.title} class=${column.number ? "number" : (column.style ?? "")} title=${column.shown ? row.values[index] : nothing}>${this.cell(column, row, index)}</td>`)}
              <td data-title="Age" class="number">${age(row.object.metadata.creationTimestamp, now)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
      ${rest > 0 ? html`<p class="rest"><span class="muted">${this.drawn} of ${rows.length} are shown.</span> <button class="button" @click=${() => void this.more()}>Show ${Math.min(rest, DRAWN)} more</button></p>` : nothing}
    </div>`;
  }

  private heading(by: string, number = false): TemplateResult {
    const order = by !== this.choice.by ? "none" : this.choice.descending ? "descending" : "ascending";
    return html`<th scope="col" class=${number ? "number" : ""} aria-sort=${order}><button class="sort" @click=${() => this.sort(by)}>${by}</button></th>`;
  }

  private cell(column: Column, { object, values }: Row, index: number): TemplateResult | string {
    const text = column.shown?.(object) ?? values[index] ?? "";
    if (!column.leadsTo || !text) return text;
    return html`<a href=${format({ namespace: this.namespace, kind: column.leadsTo, name: text })}>${text}</a>`;
  }

  private empty(total: number): TemplateResult | typeof nothing {
    if (total) return html`<p class="card muted">Nothing matches “${this.choice.filter}”.</p>`;
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

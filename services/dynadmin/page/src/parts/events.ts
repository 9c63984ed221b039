// Live Events of an object and of all objects that it owns, newest first.
import { html, type TemplateResult } from "lit";
import { words, type Schemas } from "../api/client.ts";
import { follow } from "../api/stream.ts";
import { age, moment } from "../logic/format.ts";
import { Snapshot } from "../logic/snapshot.ts";
import { problemOf } from "./badge.ts";
import { Part, properties, state } from "./part.ts";

/** Number of Events with which the stream starts, and that the page keeps; older ones are dropped. */
const [FIRST, KEPT] = [200, 1000];

class Events extends Part {
  static override properties = { ...properties("path"), ...state("problem", "warnings") };
  path = "";
  private readonly rows = new Snapshot<Schemas["Event"]>(KEPT);
  private problem = "";
  private warnings = false;

  override connectedCallback(): void {
    super.connectedCallback();
    follow(
      `${this.path}/events`,
      {
        query: { watch: true, limit: FIRST },
        again: true,
        onOpen: (resumed) => this.rows.opened(resumed),
        onEvent: ({ event, data }) => this.took(event, JSON.parse(data)),
        onLine: (line, detail) => (this.problem = line === "live" ? "" : detail || this.problem),
      },
      this.stop,
    ).catch((error: unknown) => (this.problem = words(error)));
    // Ages grow without any event.
    this.every(10_000, () => this.requestUpdate());
  }

  private took(event: string, data: Schemas["Event"] & { detail: string }): void {
    if (event === "event") this.rows.put(data.id, data);
    else if (event === "synced") this.rows.whole();
    else this.problem = data.detail;
    this.drawSoon();
  }

  override render(): TemplateResult {
    if (!this.rows.synced) return this.problem ? html`${problemOf(this.problem)}` : html`<p class="card muted" role="status">Loading</p>`;
    const all = this.rows.items.reverse();
    const shown = all.filter((each) => !this.warnings || each.type === "Warning");
    const now = Date.now();
    return html`<div class="tools">
        <label class="check"><input type="checkbox" .checked=${this.warnings} @change=${() => (this.warnings = !this.warnings)} /> Warnings only</label>
        <span class="muted">${shown.length} of ${all.length}; Kubernetes keeps them for an hour</span>
      </div>
      ${problemOf(this.problem)}
      ${shown.length
        ? html`<div class="card flush"><table class="rows events">
            <caption class="hidden">Events, newest first</caption>
            <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">Of</th><th scope="col">Message</th><th scope="col">By</th></tr></thead>
            <tbody>
              ${shown.map(
                (each) => html`<tr>
                  <td data-title="When" class="short" title=${moment(each.time)}>${age(each.time, now)}${each.count > 1 ? `, ${each.count} times` : ""}</td>
                  <td data-title="What"><span class="badge ${each.type === "Warning" ? "bad" : "idle"}">${each.reason}</span></td>
                  <td data-title="Of" class="name"><div><span class="kind">${each.object.kind}</span> ${each.object.name}</div></td>
                  <td data-title="Message" class="text">${each.message}</td>
                  <td data-title="By" class="short">${each.reporter}</td>
                </tr>`,
              )}
            </tbody>
          </table></div>`
        : html`<p class="card muted">${all.length ? "No warnings." : "No events."}</p>`}`;
  }
}

customElements.define("dyn-events", Events);

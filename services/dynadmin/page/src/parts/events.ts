// Events of an object and of all that it owns, newest first.
import { html, nothing, type TemplateResult } from "lit";
import { get, words, type Schemas } from "../api/client.ts";
import { age, moment } from "../logic/format.ts";
import { Part, properties, state } from "./part.ts";

class Events extends Part {
  static override properties = { ...properties("path"), ...state("loaded", "problem", "warnings") };
  path = "";
  private loaded: Schemas["Event"][] | null = null;
  private problem = "";
  private warnings = false;

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(4000, () => this.refresh());
  }

  private async refresh(): Promise<void> {
    try {
      this.loaded = (await get<Schemas["Events"]>(`${this.path}/events`, { signal: this.stop })).items;
      this.problem = "";
    } catch (error) {
      if (!this.stop.aborted) this.problem = words(error);
    }
  }

  override render(): TemplateResult {
    if (!this.loaded) return html`<p class="muted" role="status">${this.problem || "Loading"}</p>`;
    const shown = this.loaded.filter((each) => !this.warnings || each.type === "Warning");
    const now = Date.now();
    return html`<div class="tools">
        <label class="check"><input type="checkbox" .checked=${this.warnings} @change=${() => (this.warnings = !this.warnings)} /> Warnings only</label>
        <span class="muted">${shown.length} of ${this.loaded.length}; Kubernetes keeps them for an hour</span>
      </div>
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      ${shown.length
        ? html`<div class="card flush"><table class="rows">
            <caption class="hidden">Events, newest first</caption>
            <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">Of</th><th scope="col">Message</th><th scope="col">By</th></tr></thead>
            <tbody>
              ${shown.map(
                (each) => html`<tr>
                  <td data-title="When" class="short" title=${moment(each.time)}>${age(each.time, now)}${each.count > 1 ? `, ${each.count} times` : ""}</td>
                  <td data-title="What"><span class="badge ${each.type === "Warning" ? "bad" : "idle"}">${each.reason}</span></td>
                  <td data-title="Of" class="name">${each.object.kind} ${each.object.name}</td>
                  <td data-title="Message" class="text">${each.message}</td>
                  <td data-title="By" class="short">${each.reporter}</td>
                </tr>`,
              )}
            </tbody>
          </table></div>`
        : html`<p class="card muted">No events.</p>`}`;
  }
}

customElements.define("dyn-events", Events);

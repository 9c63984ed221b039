// Who changed an object, when, and which fields.
import { html, nothing, type TemplateResult } from "lit";
import { get, type KubeObject, type Schemas } from "../api/client.ts";
import { fieldsOf, writerOf } from "../logic/changes.ts";
import { age, moment } from "../logic/format.ts";
import { Part, properties, state } from "./part.ts";

/** Number of writers that are shown first: the last ones. */
const SHOWN = 4;

class Changes extends Part {
  static override properties = { ...properties("path", "object"), ...state("changes", "all") };
  path = "";
  object!: KubeObject;
  private changes: Schemas["FieldWriter"][] = [];
  private all = false;
  /** The generation, which each change of the desired state increases, to which the changes belong. */
  private known = -1;

  override willUpdate(): void {
    const { generation } = this.object.metadata;
    if (generation === this.known) return;
    this.known = generation;
    get<Schemas["Status"]>(`${this.path}/status`, { signal: this.stop })
      .then((answer) => (this.changes = answer.changes))
      // The next version of the object repeats it.
      .catch(() => (this.known = -1));
  }

  override render(): TemplateResult | typeof nothing {
    const { changes } = this;
    if (!changes.length) return nothing;
    const now = Date.now();
    const rest = changes.length - SHOWN;
    return html`<section class="card wide">
      <h2>Who changed it</h2>
      <ul class="plain">
        ${changes.slice(0, this.all ? undefined : SHOWN).map(
          (each) => html`<li>
            <strong>${writerOf(each.manager)}</strong> <span class="muted" title=${moment(each.time)}>${each.time ? `${age(each.time, now)} ago` : ""}</span>
            <p class="muted">set ${fieldsOf(each.fields).join(", ")}</p>
          </li>`,
        )}
      </ul>
      ${rest > 0 && !this.all ? html`<button class="button" @click=${this.showAll}>Show ${rest} more</button>` : nothing}
    </section>`;
  }

  private showAll(): void {
    this.all = true;
    // The button is gone.
    void this.updateComplete.then(() => {
      const [first] = [...this.querySelectorAll<HTMLElement>("li")].slice(SHOWN);
      first?.setAttribute("tabindex", "-1");
      first?.focus();
    });
  }
}

customElements.define("dyn-changes", Changes);

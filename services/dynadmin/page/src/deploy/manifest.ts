// The manifest next to the form, as editable text. Event `edited` returns the text to the form, `broken` reports that the text
// cannot be read.
import { html, nothing, type TemplateResult } from "lit";
import { parse } from "../logic/yaml.ts";
import type { Any } from "../api/client.ts";
import type { Change } from "../logic/inverse.ts";
import { copying } from "../parts/badge.ts";
import { Part, properties, state } from "../parts/part.ts";

/** Debounce of typing, milliseconds. */
const PAUSE = 700;

class Manifest extends Part {
  static override properties = { ...properties("text", "kept", "stale"), ...state("draft", "problem") };
  /** The manifest of the form, as YAML. */
  text = "";
  kept: Change[] = [];
  stale = false;
  private draft: string | null = null;
  private problem = "";
  private timer = 0;

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.clearTimeout(this.timer);
  }

  /** Drop the typed text and show the form's manifest again. */
  reset(): void {
    window.clearTimeout(this.timer);
    [this.draft, this.problem] = [null, ""];
  }

  override render(): TemplateResult {
    const shown = this.draft ?? this.text;
    return html`<section class="card">
      <h2>Manifest</h2>
      <textarea class="code manifest" rows="18" spellcheck="false" ?readonly=${!shown} placeholder="The manifest appears when the form has a model and a name and is valid." aria-label="Manifest, as YAML" aria-describedby="manifest-state" aria-invalid=${this.problem ? "true" : "false"}
        .value=${shown} @input=${this.typed} @blur=${() => this.settled()}></textarea>
      <p class="error" role="alert">${this.problem}</p>
      <p class="help" id="manifest-state" role="status">
        ${!shown || this.problem ? "" : this.stale ? "Manifest of the last valid form." : "Edits also change the form."}
      </p>
      ${this.kept.length
        ? html`<div class="notice">
            <p>Changes that the form has no field for:</p>
            <ul>${this.kept.map((each) => html`<li><code>${each.pointer}</code> ${each.value === undefined ? "removed" : html`<code>${JSON.stringify(each.value)}</code>`}</li>`)}</ul>
            <button class="button" @click=${() => this.dispatchEvent(new CustomEvent("drop"))}>Drop these changes</button>
          </div>`
        : nothing}
      ${shown
        ? html`<div class="actions">${copying(shown, "Manifest")}
            ${this.problem ? html`<button class="button" @click=${this.discard}>Discard my text</button>` : nothing}</div>`
        : nothing}
    </section>`;
  }

  private typed(event: InputEvent): void {
    this.draft = (event.target as HTMLTextAreaElement).value;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.read(), PAUSE);
  }

  private read(): void {
    if (this.draft === null) return;
    try {
      const object: Any = parse(this.draft);
      if (typeof object !== "object" || object === null || !object.spec) throw new Error("a manifest with a spec is needed");
      this.problem = "";
      this.dispatchEvent(new CustomEvent("edited", { detail: object }));
    } catch (error) {
      this.problem = (error as Error).message.split("\n")[0] ?? "";
      this.broken();
    }
  }

  /** Nothing is deployed while the shown text differs from the form. */
  private broken(): void {
    this.dispatchEvent(new CustomEvent("broken", { detail: this.problem }));
  }

  private discard(): void {
    this.reset();
    this.broken();
  }

  /** When the user leaves the text, it shows the form's manifest again. */
  private settled(): void {
    if (this.draft === null || this.problem) return;
    window.clearTimeout(this.timer);
    this.read();
    if (!this.problem) this.draft = null;
  }
}

customElements.define("dyn-manifest", Manifest);
export type { Manifest };

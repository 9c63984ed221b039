// The form: fields of the intent in groups, each with its error. The view owns the intent.
import { html, nothing, type TemplateResult } from "lit";
import type { Any, Entry } from "../api/client.ts";
import { get } from "../logic/pointer.ts";
import { meant, shown } from "../logic/text.ts";
import { Part, properties, state } from "../parts/part.ts";
import { fieldAt, GROUPS, isShown, type Field } from "./fields.ts";

export interface Edit {
  pointer: string;
  value?: Any;
  /** Why the text is invalid; an invalid text has no value. */
  problem?: string;
}

class Form extends Part {
  static override properties = { ...properties("intent", "errors", "suggestions", "disabled"), ...state("drafts") };
  intent: Any = {};
  errors: Entry[] = [];
  suggestions: Record<string, string[]> = {};
  disabled = false;
  /** Typed texts that differ from the text of their value: an incomplete line, a number that ends with a point. */
  private drafts: Record<string, string> = {};

  /** Drop typed texts: the intent was set by other code. */
  reset(): void {
    this.drafts = {};
  }

  override render(): TemplateResult {
    const groups = GROUPS.filter((group) => !group.modes || group.modes === this.intent.mode);
    return html`${groups.map((group) => {
        const fields = group.fields.filter((field) => isShown(field, this.intent));
        const hasErrors = fields.some((field) => this.errorOf(field));
        const given = fields.filter((field) => get(this.intent, field.pointer) !== undefined).length;
        const grid = html`<div class="fields">${fields.map((field) => this.field(field))}</div>`;
        return group.open
          ? html`<section class="card"><h2>${group.title}</h2>${grid}</section>`
          : html`<details class="card" ?open=${hasErrors || nothing}>
              <summary><h2>${group.title}</h2>${given ? html`<span class="muted">${given} given</span>` : nothing}</summary>
              ${grid}
            </details>`;
      })}
      ${Object.entries(this.suggestions).map(([name, values]) => html`<datalist id=${`suggest-${name}`}>${values.map((each) => html`<option value=${each}></option>`)}</datalist>`)}`;
  }

  private errorOf(field: Field): string {
    return this.errors.filter((each) => fieldAt(each.pointer, this.intent) === field).map((each) => each.detail).join("; ");
  }

  private field(field: Field): TemplateResult {
    const id = `field${field.pointer.replaceAll("/", "-")}`;
    const error = this.errorOf(field);
    const described = [field.help ? `${id}-help` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ") || nothing;
    const value = get(this.intent, field.pointer);
    const label = html`${field.label}${field.required ? html`<span class="muted" aria-hidden="true"> *</span>` : nothing}${field.unit ? html`<span class="muted"> (${field.unit})</span>` : nothing}`;
    const wide = ["list", "map", "json"].includes(field.type) || field.pointer === "/model/name";
    return html`<div class="field ${wide ? "across" : ""}">
      ${field.type === "check"
        ? html`<label class="check" for=${id}><input id=${id} name=${field.pointer} type="checkbox" .checked=${value === true} ?disabled=${this.disabled} aria-describedby=${described}
            @change=${(event: Event) => this.give(field, (event.target as HTMLInputElement).checked || undefined)} /> ${label}</label>`
        : html`<label for=${id}>${label}</label>${this.control(field, id, value, described, error)}`}
      ${field.help ? html`<p class="help" id=${`${id}-help`}>${field.help}</p>` : nothing}
      ${error ? html`<p class="error" id=${`${id}-error`}>${error}</p>` : nothing}
    </div>`;
  }

  private control(field: Field, id: string, value: Any, described: string | typeof nothing, error: string): TemplateResult {
    const text = this.drafts[field.pointer] ?? shown(field.type, value);
    const invalid = error ? "true" : "false";
    const typed = (event: Event): void => this.typed(field, (event.target as HTMLInputElement).value);
    if (field.type === "select" || field.type === "boolean") {
      const options = field.type === "boolean" ? ["true", "false"] : (field.options ?? []);
      const words: Record<string, string> = { true: "yes", false: "no" };
      return html`<select id=${id} name=${field.pointer} ?disabled=${this.disabled} aria-invalid=${invalid} aria-describedby=${described} @change=${typed}>
        <option value="" .selected=${text === ""}>default</option>
        ${options.map((each) => html`<option value=${each} .selected=${each === text}>${words[each] ?? each}</option>`)}
      </select>`;
    }
    if (field.type === "list" || field.type === "map" || field.type === "json")
      return html`<textarea id=${id} name=${field.pointer} class="code" rows="3" spellcheck="false" ?disabled=${this.disabled} placeholder=${field.placeholder ?? nothing}
        aria-invalid=${invalid} aria-describedby=${described} .value=${text} @input=${typed}></textarea>`;
    return html`<input id=${id} name=${field.pointer} inputmode=${field.type === "number" ? "decimal" : nothing} ?disabled=${this.disabled} ?required=${field.required ?? false}
      placeholder=${field.placeholder ?? nothing} list=${field.suggest ? `suggest-${field.suggest}` : nothing} autocomplete="off" spellcheck="false"
      aria-invalid=${invalid} aria-describedby=${described} .value=${text} @input=${typed} />`;
  }

  private typed(field: Field, text: string): void {
    this.drafts = { ...this.drafts, [field.pointer]: text };
    let value: Any;
    try {
      value = meant(field.type, text);
    } catch (error) {
      this.send({ pointer: field.pointer, problem: (error as Error).message });
      return;
    }
    this.give(field, value);
  }

  private give(field: Field, value: Any): void {
    this.send({ pointer: field.pointer, value });
  }

  private send(edit: Edit): void {
    this.dispatchEvent(new CustomEvent<Edit>("edit", { detail: edit }));
  }
}

customElements.define("dyn-form", Form);
export type { Form };

// Short messages about successes and failures, announced to screen readers.
import { html, type TemplateResult } from "lit";
import { Part, state } from "./part.ts";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

let shown: Toasts | null = null;
let next = 0;
const STAYS = 7000;

class Toasts extends Part {
  static override properties = state("all");
  private all: Toast[] = [];

  override connectedCallback(): void {
    super.connectedCallback();
    shown = this;
  }

  add(text: string, bad: boolean): void {
    const toast = { id: next++, text, bad };
    this.all = [...this.all.slice(-3), toast];
    if (!bad) window.setTimeout(() => this.drop(toast), STAYS);
  }

  private drop(toast: Toast): void {
    this.all = this.all.filter((each) => each !== toast);
  }

  override render(): TemplateResult {
    return html`<div class="toasts" role="status" aria-live="polite">
      ${this.all.map(
        (each) => html`<div class="toast ${each.bad ? "bad" : ""}">
          <span>${each.text}</span>
          <button class="icon" aria-label="Dismiss" @click=${() => this.drop(each)}>×</button>
        </div>`,
      )}
    </div>`;
  }
}

customElements.define("dyn-toasts", Toasts);

/** Show a message; a `bad` one stays until the user dismisses it. */
export function say(text: string, bad = false): void {
  shown?.add(text, bad);
}

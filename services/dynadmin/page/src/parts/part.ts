// The base of all elements: light DOM, and tasks that end when the element is removed.
import { LitElement, type PropertyValues } from "lit";
import { keepRoles } from "../logic/roles.ts";

/** The debounce of rendering, milliseconds: users do not notice it, and a thousand rows render in this time. */
const DRAWN_WITHIN = 100;

export class Part extends LitElement {
  private tasks = new AbortController();
  private drawing = 0;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override update(changed: PropertyValues): void {
    super.update(changed);
    keepRoles(this);
  }

  /** Aborted when the element is removed, or after `restart`. */
  protected get stop(): AbortSignal {
    return this.tasks.signal;
  }

  /** End the tasks of this element. */
  protected restart(): void {
    this.tasks.abort();
    this.tasks = new AbortController();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.tasks.abort();
  }

  override connectedCallback(): void {
    if (this.tasks.signal.aborted) this.tasks = new AbortController();
    super.connectedCallback();
  }

  /** Render once for all events within a moment: a stream starts with hundreds of events, and each would render everything. */
  drawSoon(): void {
    this.drawing ||= window.setTimeout(() => {
      this.drawing = 0;
      this.requestUpdate();
    }, DRAWN_WITHIN);
  }

  /** A disabled button loses the focus: restore it for the user who pressed the button, unless something else has the focus. */
  protected goOnAt(selector: string): void {
    void this.updateComplete.then(() => {
      const at = document.activeElement;
      if (at === document.body || at?.matches(":disabled")) this.querySelector<HTMLElement>(selector)?.focus();
    });
  }

  /** Call now, and repeatedly until the element is removed; the callee handles errors. Milliseconds. */
  protected every(period: number, act: () => Promise<void> | void): void {
    const signal = this.stop;
    const round = async (): Promise<void> => {
      if (!document.hidden) await act();
      if (!signal.aborted) window.setTimeout(() => void round(), period);
    };
    void round();
  }
}

/** Reactive properties without decorators: types in the class, names here. */
export function state(...names: string[]): Record<string, { state: true }> {
  return Object.fromEntries(names.map((name) => [name, { state: true }]));
}

export function properties(...names: string[]): Record<string, { attribute: false }> {
  return Object.fromEntries(names.map((name) => [name, { attribute: false }]));
}

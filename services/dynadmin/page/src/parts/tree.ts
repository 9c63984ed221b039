// The tree of an object: what it owns, down to pods with their nodes and GPUs.
import { html, nothing, type TemplateResult } from "lit";
import { get, words, type Any, type KubeObject, type Schemas } from "../api/client.ts";
import { count } from "../logic/format.ts";
import { Part, properties, state } from "./part.ts";

/** Shortest intervals between refreshes: of a tree, and of a ready tree, which also changes with its object. Milliseconds. */
const [APART, CALM] = [1500, 15_000];

/** A tree as nested lists, also for objects that would be created. */
export function branches(node: Any): TemplateResult {
  const tone = node.ready === true ? "good" : node.ready === false ? "busy" : "idle";
  const facts = [
    node.count > 1 ? `× ${node.count}` : "",
    node.node ? `on ${node.node}` : "",
    node.gpus ? count(node.gpus, "GPU") : "",
    node.ready === undefined ? "" : (node.state ?? ""),
  ].filter(Boolean);
  return html`<li>
    <div class="node">
      <span class="dot ${tone}" aria-hidden="true"></span>
      <span class="kind">${node.kind}</span> <span class="name">${node.name}</span>
      <span class="muted">${facts.join(", ")}</span>
      ${node.message && node.ready !== true ? html`<p class="why">${node.message}</p>` : nothing}
    </div>
    ${node.children?.length ? html`<ul>${node.children.map(branches)}</ul>` : nothing}
  </li>`;
}

class Tree extends Part {
  static override properties = { ...properties("path", "object", "second"), ...state("loaded", "problem") };
  path = "";
  /** Another tree of the view already shows what is omitted. */
  second = false;
  /** Each new version of the object triggers a refresh. */
  object: KubeObject | null = null;
  private loaded: Schemas["Tree"] | null = null;
  private problem = "";
  private asked = 0;
  /** The object changed, but the last refresh was too recent. */
  private isBehind = false;

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(3000, () => {
      if (this.isBehind || this.problem || this.loaded?.tree.ready !== true || Date.now() - this.asked >= CALM) return this.refresh();
    });
  }

  override updated(changed: Map<string, unknown>): void {
    if (changed.has("object") || changed.has("path")) void this.refresh();
  }

  private async refresh(): Promise<void> {
    this.isBehind = Date.now() - this.asked < APART;
    if (!this.path || this.isBehind) return;
    const asked = (this.asked = Date.now());
    try {
      const loaded = await get<Schemas["Tree"]>(`${this.path}/tree`, { signal: this.stop });
      // The answer of a later request may have arrived already.
      if (asked === this.asked) [this.loaded, this.problem] = [loaded, ""];
    } catch (error) {
      if (!this.stop.aborted && asked === this.asked) this.problem = words(error);
    }
  }

  override render(): TemplateResult {
    if (!this.loaded) return html`<p class="muted" role="status">${this.problem || "Loading"}</p>`;
    const { tree, hidden } = this.loaded;
    return html`<ul class="tree">${branches(tree)}</ul>
      ${hidden.length && !this.second ? html`<p class="muted">Omitted, because you may not list them: ${hidden.join(", ")}.</p>` : nothing}
      ${this.problem ? html`<p class="muted">${this.problem}</p>` : nothing}`;
  }
}

customElements.define("dyn-tree", Tree);

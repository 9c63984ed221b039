// Deploy a model: fill the form, read the costs and the manifest, then deploy.
import { html, nothing, type TemplateResult } from "lit";
import { get, words, type Any, type Schemas } from "../api/client.ts";
import { rights, type Rights } from "../api/session.ts";
import { asGraph, isWhole } from "../logic/points.ts";
import { format, type Kind } from "../logic/route.ts";
import { ask } from "../parts/dialog.ts";
import { Part, properties, state } from "../parts/part.ts";
import { say } from "../parts/toasts.ts";
import { branches } from "../parts/tree.ts";
import { Draft } from "./draft.ts";
import { fieldAt } from "./fields.ts";
import { fitting } from "./fit.ts";
import { leave, taken } from "./left.ts";
import type { Edit, Form } from "./form.ts";
import { PRESETS } from "./presets.ts";
import "./estimate.ts";
import "./form.ts";
import type { Manifest } from "./manifest.ts";
import "./manifest.ts";

const MODES = [
  { mode: "objective", title: "An objective", about: "Set the target times for users. Profiling selects the graph." },
  { mode: "graph", title: "A graph by hand", about: "Set the engine, the number of GPUs, and the number of replicas." },
];

const OWN = "own";

class Deploy extends Part {
  static override properties = { ...properties("namespace", "user"), ...state("rights", "capabilities", "busy", "estimated", "begun") };
  namespace = "";
  user = "";
  private rights: Rights | null = null;
  private capabilities: Schemas["Capabilities"] | null = null;
  private busy = false;
  private estimated: Any = null;
  /** What the form began with: the number of a preset, nothing, or OWN once the user has filled in something. */
  private begun = "";
  private readonly draft = new Draft(() => this.drawn());

  override connectedCallback(): void {
    super.connectedCallback();
    document.title = "Deploy a model · Dynadmin";
    get<Schemas["Capabilities"]>("/capabilities").then((answer) => (this.capabilities = answer)).catch(() => undefined);
    this.every(10_000, () => {
      if (this.hasUpdated) this.askRights();
    });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.draft.close();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("namespace")) return;
    this.rights = null;
    this.askRights();
    const left = this.hasUpdated ? null : taken(this.user);
    if (left) this.begun = OWN;
    this.draft.open(this.namespace, left ?? undefined);
    // When the message can be shown.
    if (left?.isPart) void this.updateComplete.then(() => say("The form is restored, except variables, arguments and commands: they may contain secrets, and were not kept during the sign-in", true));
  }

  private askRights(): void {
    const { namespace } = this;
    rights(namespace).then((answer) => {
      // The user may have changed the namespace meanwhile.
      if (namespace === this.namespace) this.rights = answer;
    }, () => undefined);
  }

  private drawn(): void {
    // A valid intent is estimated; an invalid one keeps the last estimate.
    if (this.draft.answer && !this.draft.errors.length && !this.draft.problem) this.estimated = this.draft.intent;
    leave({ ...this.draft.said, user: this.user });
    this.requestUpdate();
  }

  /** Why the user may not deploy this; empty if the user may. */
  private get forbidden(): string {
    const collection = this.draft.intent.mode === "graph" ? "deployments" : "requests";
    if (!this.rights || this.rights.collections[collection]?.create) return "";
    return `You may not create ${collection === "requests" ? "deployment requests" : "graphs"} in ${this.namespace}. Request a role with “create” on them; until then you can read what would be created.`;
  }

  override render(): TemplateResult {
    const { intent, errors } = this.draft;
    return html`
      <header class="head"><div><h1 tabindex="-1">Deploy a model</h1>
        <p class="lead">Into ${this.namespace}. Nothing is created before you press Deploy.</p></div></header>
      ${this.forbidden ? html`<p class="notice">${this.forbidden}</p>` : nothing}
      <div class="modes" role="group" aria-label="Kind of intent">
        ${MODES.map((each) => html`<button class="mode" aria-pressed=${each.mode === intent.mode} @click=${() => this.setMode(each.mode)}>
          <strong>${each.title}</strong><span>${each.about}</span></button>`)}
      </div>
      <label class="preset"><span>Begin with</span>
        <select name="preset" @change=${(event: Event) => void this.preset(event.target as HTMLSelectElement)}>
          ${this.begun === OWN ? html`<option value=${OWN} selected>what you filled in</option>` : nothing}
          <option value="" .selected=${this.begun === ""}>an empty form</option>
          ${PRESETS.map((each, index) => html`<option value=${index} .selected=${this.begun === String(index)}>${each.title}: ${each.about}</option>`)}
        </select>
      </label>
      <div class="deploy">
        <form class="left" novalidate @submit=${this.submit}>
          <dyn-form .intent=${intent} .errors=${errors} .suggestions=${this.suggestions} @edit=${(event: CustomEvent<Edit>) => this.edit(event.detail)}></dyn-form>
          ${this.summary()}
        </form>
        <div class="right">
          <dyn-estimate .namespace=${this.namespace} .intent=${this.estimated} @point=${(event: CustomEvent<Any>) => this.point(event.detail)}></dyn-estimate>
          ${fitting(this.draft.answer?.gpus)}
          <dyn-manifest .text=${this.draft.text} .kept=${this.draft.kept} .stale=${errors.length > 0}
            @edited=${(event: CustomEvent<Any>) => void this.edited(event.detail)} @broken=${(event: CustomEvent<string>) => this.draft.mistype("/manifest", event.detail)} @drop=${() => this.draft.drop()}></dyn-manifest>
          ${this.tree()}
        </div>
      </div>
    `;
  }

  private get suggestions(): Record<string, string[]> {
    const kinds: Any[] = (this.capabilities as Any)?.gpus?.kinds ?? [];
    return { skus: this.capabilities?.gpuSkus ?? [], products: kinds.map((each) => each.product) };
  }

  private summary(): TemplateResult {
    const { answer, errors, problem, checked, intent } = this.draft;
    const elsewhere = errors.filter((each) => !fieldAt(each.pointer, intent));
    const ready = answer !== null && !errors.length && !problem;
    return html`<section class="card summary" aria-label="Deploy">
      ${problem ? html`<p class="notice bad" role="alert">${problem}</p>` : nothing}
      ${elsewhere.map((each) => html`<p class="notice bad" role="alert"><code>${each.pointer}</code> ${each.detail}</p>`)}
      ${(answer?.unexpressed ?? []).map((each) => html`<p class="notice"><code>${each.pointer}</code> has no place in it: ${each.detail}</p>`)}
      ${(answer?.warnings ?? []).map((each) => html`<p class="notice">${each}</p>`)}
      ${answer?.defaulted.length
        ? html`<details><summary>${answer.defaulted.length} defaults</summary><ul class="plain">${answer.defaulted.map((each) => html`<li><code>${each.path}</code> ${JSON.stringify(each.value)}: ${each.why}</li>`)}</ul></details>`
        : nothing}
      <div class="actions">
        <span class="muted" role="status">${this.standing(ready, checked, errors.length)}</span>
        <button class="button accent" ?disabled=${!ready || !checked || this.busy || this.forbidden !== ""} title=${this.forbidden || nothing}>${this.busy ? "Deploying" : "Deploy"}</button>
      </div>
    </section>`;
  }

  private standing(ready: boolean, checked: boolean, wrong: number): string {
    if (wrong) return `${wrong} to correct`;
    if (!this.draft.answer) return "A model and a name are needed";
    if (!ready) return "";
    return checked ? "The API server and admission accept it" : "Checking";
  }

  private tree(): TemplateResult | typeof nothing {
    const { answer } = this.draft;
    if (!answer) return nothing;
    if (!answer.tree)
      return html`<section class="card"><h2>Resulting objects</h2><p class="muted">A request. Profiling selects the graph, which ${this.draft.intent.objective?.autoApply === false ? "waits for you" : "is deployed at once"}.</p></section>`;
    return html`<section class="card"><h2>Resulting objects</h2><ul class="tree">${branches(answer.tree)}</ul></section>`;
  }

  private edit({ pointer, value, problem }: Edit): void {
    this.begun = OWN;
    if (problem) this.draft.mistype(pointer, problem);
    else this.draft.give(pointer, value);
  }

  private setMode(mode: string): void {
    if (mode === this.draft.intent.mode) return;
    if (this.draft.kept.length) say("Dropped the changes of the manifest that the form has no field for", true);
    this.replace({ ...this.draft.intent, mode });
  }

  private async preset(select: HTMLSelectElement): Promise<void> {
    const { value } = select;
    const chosen = PRESETS[Number(value || NaN)];
    const replace = async (): Promise<void> => {
      [this.begun, this.estimated] = [value, null];
      this.replace(chosen ? structuredClone(chosen.intent) : { mode: this.draft.intent.mode });
    };
    if (this.begun !== OWN) return replace();
    const body = html`<p>${chosen ? chosen.title : "An empty form"} replaces what you filled in.</p>`;
    if (!(await ask({ title: "Replace the form?", body, act: "Replace", danger: true, run: replace }))) select.value = OWN;
  }

  private point(figures: Any): void {
    this.begun = OWN;
    this.replace(asGraph(this.draft.intent, figures));
    say(isWhole(figures) ? "The point is filled in as a graph" : "Filled in with the size of the decode workers; change the prefill workers in the manifest");
  }

  private async edited(manifest: Any): Promise<void> {
    this.begun = OWN;
    this.form.reset();
    await this.draft.edited(manifest);
  }

  /** Replace the whole input with another intent. */
  private replace(intent: Any): void {
    this.form.reset();
    this.querySelector<Manifest>("dyn-manifest")!.reset();
    this.draft.replace(intent);
  }

  private get form(): Form {
    return this.querySelector<Form>("dyn-form")!;
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    if (this.forbidden) return;
    this.busy = true;
    try {
      const { namespace, collection, name } = await this.draft.deploy();
      this.draft.close();
      leave(null);
      say(`${name} is being deployed`);
      location.hash = format({ namespace, kind: collection as Kind, name });
    } catch (error) {
      say(words(error), true);
      await this.updateComplete;
      this.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    } finally {
      this.busy = false;
      this.goOnAt(".summary button");
    }
  }
}

customElements.define("dyn-deploy", Deploy);

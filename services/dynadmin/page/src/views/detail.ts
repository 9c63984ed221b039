// One object: its state, advice, and actions. One tab for each aspect.
import { html, nothing, type TemplateResult } from "lit";
import { call, get, type KubeObject, type Schemas } from "../api/client.ts";
import { rights, type Rights } from "../api/session.ts";
import { draftOf, drop } from "../logic/drafts.ts";
import { age } from "../logic/format.ts";
import { deletionOf, goesAlong, isDeletable, KINDS, stateOf } from "../logic/kinds.ts";
import { format, type Kind } from "../logic/route.ts";
import { badge, lineOf, problemOf } from "../parts/badge.ts";
import { ask } from "../parts/dialog.ts";
import { icon } from "../parts/icons.ts";
import { Part, properties, state } from "../parts/part.ts";
import { say } from "../parts/toasts.ts";
import { Watched } from "../parts/watched.ts";
import { facts, overview } from "./overview.ts";
import "../parts/chat.ts";
import "../parts/events.ts";
import "../parts/logs.ts";
import "../parts/planner.ts";
import "../parts/points.ts";
import "../parts/yaml.ts";

const TABS: Record<Kind, [tab: string, title: string][]> = {
  deployments: [["", "Overview"], ["logs", "Logs"], ["events", "Events"], ["chat", "Chat"], ["planner", "Planner"], ["yaml", "YAML"]],
  requests: [["", "Overview"], ["points", "Points"], ["events", "Events"], ["yaml", "YAML"]],
  models: [["", "Overview"], ["events", "Events"], ["yaml", "YAML"]],
  adapters: [["", "Overview"], ["events", "Events"], ["yaml", "YAML"]],
};

class Detail extends Part {
  static override properties = { ...properties("namespace", "kind", "name", "tab", "query", "back"), ...state("rights", "managedBy") };
  namespace = "";
  kind: Kind = "deployments";
  name = "";
  tab = "";
  /** Selection of the tab's content from the address. */
  query = "";
  /** Address of the object's list. */
  back = "";
  private rights: Rights | null = null;
  private managedBy = "";
  private readonly watched = new Watched(this);

  private get path(): string {
    return `/namespaces/${this.namespace}/${this.kind}/${this.name}`;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(10_000, () => {
      if (this.hasUpdated) this.askRights();
      this.requestUpdate();
    });
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (!["namespace", "kind", "name"].some((each) => changed.has(each))) return;
    document.title = `${this.name} · ${KINDS[this.kind].title} · Dynadmin`;
    this.watched.watch(this.path);
    this.managedBy = "";
    this.askRights();
    get<Schemas["Status"]>(`${this.path}/status`, { signal: this.stop })
      .then((answer) => (this.managedBy = answer.managedBy))
      .catch(() => undefined);
  }

  /** Read the rights periodically: rights change, and after a failed read the user seems to have none. */
  private askRights(): void {
    rights(this.namespace).then((answer) => (this.rights = answer), () => undefined);
  }

  private may(verb: string): boolean {
    return this.rights?.collections[this.kind]?.[verb] ?? false;
  }

  /** Titles of disabled actions need a mouse: if all are disabled, the view shows the reason. */
  private isReader(): boolean {
    return this.rights !== null && !["update", "patch", "delete"].some((verb) => this.may(verb));
  }

  override render(): TemplateResult {
    const object = this.watched.get(this.name);
    return html`
      <nav class="crumbs" aria-label="Breadcrumbs"><a href=${this.back}>${KINDS[this.kind].title}</a> ${icon("arrow")} <span aria-current="page">${this.name}</span></nav>
      <header class="head">
        <div>
          <h1 tabindex="-1">${this.name} ${object ? badge(stateOf(this.kind, object)) : nothing}</h1>
          ${object ? html`<p class="lead">${facts(this.kind, object)}, created ${age(object.metadata.creationTimestamp, Date.now())} ago</p>` : nothing}
        </div>
        <div class="actions">${lineOf(this.watched)} ${object ? this.actions(object) : nothing}</div>
      </header>
      ${problemOf(this.watched.problem)}
      ${object?.metadata.deletionTimestamp ? html`<p class="notice">${deletionOf(object)}</p>` : nothing}
      ${this.managedBy ? html`<p class="notice">${this.managedBy} manages this object. A change here is answered with the patch to commit to its repository.</p>` : nothing}
      ${object && this.tab !== "yaml" && this.isReader() ? html`<p class="notice">You may read this object, but not change it.</p>` : nothing}
      ${this.tabs()}
      <section class="tab" aria-label=${TABS[this.kind].find(([tab]) => tab === this.tab)?.[1] ?? "Overview"}>
        ${object ? this.content(object) : this.absent()}
      </section>
    `;
  }

  private absent(): TemplateResult | typeof nothing {
    if (this.watched.synced && this.tab === "yaml" && draftOf(this.path)) return this.yaml(null, "The object no longer exists. Your changes are kept here to copy.");
    if (this.watched.synced)
      return html`<div class="card empty"><p>${this.watched.gone ? "It was deleted." : `There is no ${KINDS[this.kind].one} with this name.`}</p>
        <a class="button" href=${this.back}>All ${KINDS[this.kind].title.toLowerCase()}</a></div>`;
    return this.watched.problem ? nothing : html`<p class="card muted" role="status">Loading</p>`;
  }

  private tabs(): TemplateResult {
    const { namespace, kind, name } = this;
    return html`<nav class="tabs" aria-label="Views of the object">
      ${TABS[kind].map(([tab, title]) => html`<a href=${format({ namespace, kind, name, tab })} aria-current=${tab === this.tab ? "page" : nothing}>${title}${tab === "yaml" && draftOf(this.path) ? " (edited)" : ""}</a>`)}
    </nav>`;
  }

  private content(object: KubeObject): TemplateResult {
    const path = this.path;
    if (this.tab === "events") return html`<dyn-events .path=${path}></dyn-events>`;
    if (this.tab === "logs") return this.rights && !this.rights.logs ? this.missing("read logs of pods") : html`<dyn-logs .path=${path} .graph=${object} .query=${this.query}></dyn-logs>`;
    if (this.tab === "chat") return html`<dyn-chat .path=${path} .graph=${stateOf(this.kind, object)}></dyn-chat>`;
    if (this.tab === "planner") return html`<dyn-planner .path=${path} .name=${this.name}></dyn-planner>`;
    if (this.tab === "points") return html`<dyn-points .path=${path} .request=${object} .may=${this.rights?.collections.deployments?.create ?? false}></dyn-points>`;
    if (this.tab === "yaml")
      return this.yaml(object, this.kind === "adapters" ? "Adapters cannot be edited here: scale the component on the page of the graph." : "You may read this object, but not change it.");
    return overview(this.kind, object, this.path, (verb) => this.may(verb), this.namespace);
  }

  /** `reason`: why the object cannot be changed; empty if it can. */
  private yaml(object: KubeObject | null, reason: string): TemplateResult {
    const may = object !== null && this.kind !== "adapters" && this.may("update");
    return html`<dyn-yaml .path=${this.path} .object=${object} .may=${may} .reason=${reason} @drafted=${() => this.requestUpdate()}></dyn-yaml>`;
  }

  private missing(what: string): TemplateResult {
    return html`<p class="notice">You may not ${what} in ${this.namespace}.</p>`;
  }

  private actions(object: KubeObject): TemplateResult | typeof nothing {
    if (object.metadata.deletionTimestamp) return nothing;
    const can = isDeletable(this.kind, object);
    return html`
      ${this.kind === "deployments"
        ? html`<button class="button" ?disabled=${!this.may("patch")} title=${this.may("patch") ? nothing : "You may not change graphs in this namespace"} @click=${this.restartPods}>${icon("restart")} Restart</button>`
        : nothing}
      ${can
        ? html`<button class="button danger" ?disabled=${!this.may("delete")} title=${this.may("delete") ? nothing : `You may not delete ${KINDS[this.kind].title.toLowerCase()} here`} @click=${() => this.erase(object)}>${icon("trash")} Delete</button>`
        : nothing}
    `;
  }

  private async restartPods(): Promise<void> {
    const body = html`<p>New pods replace the old ones, component by component, while the graph keeps serving.</p>`;
    const run = async (): Promise<void> => void (await call("POST", `${this.path}/restart`, { body: {} }));
    if (await ask({ title: `Restart ${this.name}?`, body, act: "Restart", run })) say(`${this.name} restarts`);
  }

  private async erase(object: KubeObject): Promise<void> {
    const { name, kind } = this;
    const body = html`<p>Also affected: ${goesAlong(kind, object)}</p>
      <label class="field"><span>Type <strong>${name}</strong> to delete it</span><input name="confirm" autocomplete="off" required /></label>`;
    const run = async (dialog: HTMLDialogElement): Promise<void> => {
      if (dialog.querySelector<HTMLInputElement>("input[name=confirm]")!.value !== name) throw new Error(`Type ${name}`);
      await call("DELETE", this.path, { headers: { "If-Match": "*" } });
      drop(this.path);
    };
    if (!(await ask({ title: `Delete ${KINDS[kind].one} ${name}?`, body, act: "Delete", danger: true, run }))) return;
    say(`${name} is being deleted`);
    location.hash = this.back;
  }
}

customElements.define("dyn-detail", Detail);

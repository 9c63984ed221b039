// Logs of all pods of an object, merged and followed. After an interruption, the stream resumes at the id of the last line.
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, words, type KubeObject, type Schemas } from "../api/client.ts";
import { follow, type Line } from "../api/stream.ts";
import { LogLines, type LogLine } from "../logic/loglines.ts";
import { clock, count } from "../logic/format.ts";
import { componentsOf } from "../logic/kinds.ts";
import { queryOf, selectionOf, type Selection } from "../logic/pods.ts";
import { format } from "../logic/route.ts";
import { Part, properties, state } from "./part.ts";

const [AGAIN, PODS_EVERY] = [5000, 15_000];
/** Pixels above the end of the log within which it is followed. */
const AT_END = 40;

class Logs extends Part {
  static override properties = { ...properties("path", "graph", "query"), ...state("line", "problem", "search", "selection", "held", "pods") };
  path = "";
  graph!: KubeObject;
  /** The selection in the address. */
  query = "";
  private line: Line = "connecting";
  private problem = "";
  private search = "";
  private selection: Selection = selectionOf("");
  private pods: Schemas["Pod"][] = [];
  private held = false;
  /** Where the log was scrolled to when it was rendered last. */
  private end = 0;
  private log = new LogLines();
  /** Ends the stream of the previous selection. */
  private reading = new AbortController();

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(PODS_EVERY, () => this.readPods());
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("query")) return;
    this.selection = selectionOf(this.query);
    this.log = new LogLines();
    this.problem = "";
    this.reading.abort();
    this.reading = new AbortController();
    this.open();
  }

  private async readPods(): Promise<void> {
    const listed = await get<Schemas["Pods"]>(`${this.path}/pods`, { signal: this.stop }).catch(() => null);
    if (listed) this.pods = listed.items;
  }

  private open(): void {
    const { component, pod, previous } = this.selection;
    const stop = AbortSignal.any([this.stop, this.reading.signal]);
    follow(
      `${this.path}/logs`,
      {
        query: { follow: true, tail: 200, component: component || undefined, pod: pod || undefined, previous: previous || undefined },
        headers: this.log.last ? { "Last-Event-ID": this.log.last } : {},
        again: true,
        onEvent: ({ event, data, id }) => {
          if (event === "log" || event === "notice") this.log.take(JSON.parse(data) as LogLine, id, event === "notice");
          else if (event === "error" || event === "unauthorized") this.problem = JSON.parse(data).detail;
          // Engines log faster than the page renders.
          if (!this.held) this.drawSoon();
        },
        onLine: (line, detail) => {
          this.line = line;
          if (line === "live") this.problem = "";
          else if (detail) this.problem = detail;
        },
      },
      stop,
    ).then(
      // The graph and its pods are deleted; another graph may get the name. Logs of ended containers are complete.
      () => previous || window.setTimeout(() => stop.aborted || this.open(), AGAIN),
      (error: unknown) => {
        if (!stop.aborted) this.problem = words(error);
      },
    );
  }

  override updated(): void {
    const box = this.querySelector(".log");
    if (!box || this.held) return;
    const last = box.scrollHeight - box.clientHeight;
    // The user has scrolled up since the last rendering, and the event of that is still to come.
    if (box.scrollTop < Math.min(this.end, last) - AT_END) this.held = true;
    else this.end = box.scrollTop = last;
  }

  /** After scrolling up, new lines are appended below without moving the text, until the user scrolls to the end. */
  private scrolled(box: HTMLElement): void {
    this.held = box.scrollHeight - box.scrollTop - box.clientHeight > AT_END;
  }

  private toggle(): void {
    this.held = !this.held;
    this.end = 0;
  }

  override render(): TemplateResult {
    const shown = this.log.matching(this.search);
    const { component, pod, previous } = this.selection;
    const names = [...new Set([...this.pods.filter((each) => !component || each.component === component).map((each) => each.name), ...(pod ? [pod] : [])])];
    return html`<div class="tools">
        <label class="inline">Component
          <select @change=${(event: Event) => this.choose({ component: (event.target as HTMLSelectElement).value, pod: "" })}>
            <option value="">all</option>
            ${componentsOf(this.graph).map((each) => html`<option .selected=${each.name === component}>${each.name}</option>`)}
          </select></label>
        <label class="inline">Pod
          <select @change=${(event: Event) => this.choose({ pod: (event.target as HTMLSelectElement).value })}>
            <option value="">all</option>
            ${names.map((each) => html`<option .selected=${each === pod}>${each}</option>`)}
          </select></label>
        <label class="check"><input type="checkbox" .checked=${previous} @change=${() => this.choose({ previous: !previous })} /> Before the last restart</label>
        <input type="search" aria-label="Filter lines" placeholder="Filter lines" .value=${this.search} @input=${(event: InputEvent) => (this.search = (event.target as HTMLInputElement).value)} />
        <label class="check"><input type="checkbox" .checked=${!this.held} @change=${() => this.toggle()} /> Follow</label>
        <span class="muted">${count(shown.length, "line")}, <span role="status">${this.line === "broken" ? "connection lost, trying again" : this.line}</span></span>
      </div>
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      <div class="log" role="log" aria-label="Log lines" aria-live="off" tabindex="0" @scroll=${(event: Event) => this.scrolled(event.target as HTMLElement)}>
        ${repeat(
          shown,
          (each) => each.key,
          (each) => html`<div class=${each.notice ? "notice-line" : ""}>${each.time ? html`<span class="time">${clock(each.time)}</span> ` : nothing}<span class="pod">${each.pod}</span> ${each.text}</div>`,
        )}
        ${shown.length ? nothing : html`<p class="muted">No lines${this.search ? " match" : " yet"}.</p>`}
      </div>`;
  }

  /** The address has the selection: a shared link shows the same logs. */
  private choose(changes: Partial<Selection>): void {
    const { name, namespace } = this.graph.metadata;
    this.query = queryOf({ ...this.selection, ...changes });
    history.replaceState(null, "", format({ namespace, kind: "deployments", name, tab: "logs", query: this.query }));
  }
}

customElements.define("dyn-logs", Logs);

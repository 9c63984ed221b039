// Pods of a graph that are not ready: the reason, what to do, and a way to their logs. Shows nothing if all are ready.
import { html, nothing, type TemplateResult } from "lit";
import { get, passes, type KubeObject, type Schemas } from "../api/client.ts";
import { count } from "../logic/format.ts";
import { adviceOf, queryOf, unready, whyOf } from "../logic/pods.ts";
import { format } from "../logic/route.ts";
import { Part, properties, state } from "./part.ts";

type Pod = Schemas["Pod"];
/** Number of pods that are shown: often, all have the same reason. */
const SHOWN = 8;
const [OFTEN, CALM] = [3000, 15_000];

class UnreadyPods extends Part {
  static override properties = { ...properties("path", "graph"), ...state("pods") };
  path = "";
  graph!: KubeObject;
  private pods: Pod[] = [];
  private asked = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(OFTEN, () => (this.pods.length || this.isStarting() || Date.now() - this.asked >= CALM ? this.refresh() : undefined));
  }

  private isStarting(): boolean {
    return this.graph?.status?.state !== "successful";
  }

  private async refresh(): Promise<void> {
    this.asked = Date.now();
    const { stop } = this;
    try {
      this.pods = unready((await get<Schemas["Pods"]>(`${this.path}/pods`, { signal: stop })).items);
    } catch (error) {
      // The tree below says what the user may not list.
      if (!stop.aborted && !passes(error)) this.pods = [];
    }
  }

  override render(): TemplateResult | typeof nothing {
    const { pods } = this;
    if (!pods.length) return nothing;
    const shown = pods.slice(0, SHOWN);
    return html`<section class="card wide">
      <h2>${pods.length === 1 ? "A pod is not ready" : `${pods.length} pods are not ready`}</h2>
      <ul class="plain">${shown.map((each, index) => this.row(each, shown.slice(0, index)))}</ul>
      ${pods.length > SHOWN ? html`<p class="muted">And ${pods.length - SHOWN} more, in the tree below.</p>` : nothing}
    </section>`;
  }

  private row(pod: Pod, before: Pod[]): TemplateResult {
    const advice = adviceOf(pod);
    const facts = [pod.component, pod.node && `on ${pod.node}`, pod.restarts ? count(pod.restarts, "restart") : ""].filter(Boolean).join(", ");
    return html`<li>
      <strong class="name">${pod.name}</strong> <span class="muted">${facts}</span>
      <p>${whyOf(pod)}</p>
      ${advice && !before.some((each) => adviceOf(each) === advice) ? html`<p class="advice">${advice}</p>` : nothing}
      <p class="links"><a href=${this.logsOf(pod, false)} aria-label=${`Log of ${pod.name}`}>Log</a>
        ${pod.restarts ? html`<a href=${this.logsOf(pod, true)} aria-label=${`Log of ${pod.name} before the last restart`}>Log before the last restart</a>` : nothing}</p>
    </li>`;
  }

  private logsOf({ name: pod }: Pod, previous: boolean): string {
    const { name, namespace } = this.graph.metadata;
    return format({ namespace, kind: "deployments", name, tab: "logs", query: queryOf({ pod, previous }) });
  }
}

customElements.define("dyn-pods", UnreadyPods);

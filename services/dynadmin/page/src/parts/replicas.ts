// Components of a graph: desired, running and ready replicas, the owner of the number, and the control for it.
import { html, nothing, type TemplateResult } from "lit";
import { ApiProblem, call, words, type Any, type KubeObject } from "../api/client.ts";
import { componentsOf, togetherOf } from "../logic/kinds.ts";
import { Part, properties, state } from "./part.ts";
import { say } from "./toasts.ts";

class Replicas extends Part {
  static override properties = { ...properties("path", "graph", "may"), ...state("asked", "busy", "refusals") };
  path = "";
  graph!: KubeObject;
  may = false;
  private asked: Record<string, number> = {};
  private busy = "";
  private refusals: Record<string, string> = {};

  override render(): TemplateResult {
    return html`<table class="rows">
      <caption class="hidden">Components</caption>
      <thead>
        <tr><th scope="col">Component</th><th scope="col">Type</th><th scope="col">Replicas</th><th scope="col" class="number">Ready</th><th scope="col">Set by</th><th scope="col">Change</th></tr>
      </thead>
      <tbody>${componentsOf(this.graph).map((each) => this.row(each))}</tbody>
    </table>`;
  }

  private row(each: Any): TemplateResult {
    const asked = this.asked[each.name] ?? each.desired;
    const updated = each.status.updatedReplicas ?? 0;
    const part = each.desired ? Math.min(1, each.ready / each.desired) : 1;
    const together = togetherOf(each);
    const refusal = this.refusals[each.name];
    return html`<tr>
        <th scope="row">${each.name}</th>
        <td data-title="Type">${each.type ?? "worker"}</td>
        <td data-title="Replicas">
          <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`${each.ready} of ${each.desired} ready`}>
            <rect width="100" height="8" rx="4" class="rail" /><rect width=${100 * part} height="8" rx="4" class="fill" />
          </svg>
          ${updated && updated < each.desired ? html`<span class="muted">${updated} of the newest template</span>` : nothing}
          ${together > 1 ? html`<span class="muted">none, or ${together} or more</span>` : nothing}
        </td>
        <td data-title="Ready" class="number">${each.ready}/${each.desired}</td>
        <td data-title="Set by">${this.owner(each)}</td>
        <td data-title="Change">
          <form class="scale" @submit=${(event: Event) => this.scale(event, each)}>
            <input type="number" name=${each.name} min="0" max="1000" required aria-label=${`Replicas of ${each.name}`} .value=${String(asked)} ?disabled=${!this.may}
              @input=${(event: InputEvent) => (this.asked = { ...this.asked, [each.name]: (event.target as HTMLInputElement).valueAsNumber })} />
            <button class="button" ?disabled=${!this.may || asked === each.desired || this.busy === each.name} title=${this.may ? nothing : "You may not change graphs in this namespace"}>Scale</button>
          </form>
        </td>
      </tr>
      ${refusal ? html`<tr class="refusal"><td colspan="6"><p class="notice bad" role="alert">${refusal}</p></td></tr>` : nothing}`;
  }

  private owner(each: Any): string {
    if (each.scalingAdapter !== undefined && each.scalingAdapter !== null) return "scaling adapter";
    const planned = Object.keys(this.graph.metadata.annotations ?? {}).some((key) => key.includes("planner-config"));
    return planned ? "planner" : "the graph";
  }

  private async scale(event: Event, each: Any): Promise<void> {
    event.preventDefault();
    const replicas = this.asked[each.name] ?? each.desired;
    this.busy = each.name;
    this.refusals = { ...this.refusals, [each.name]: "" };
    try {
      const { body } = await call<{ via: string }>("POST", `${this.path}/scale`, { body: { component: each.name, replicas } });
      say(`${each.name} is scaled to ${replicas} (${body.via === "adapter" ? "by its scaling adapter" : "in the graph"})`);
      delete this.asked[each.name];
    } catch (error) {
      const patch = error instanceof ApiProblem && error.more.patch ? ` Patch: ${JSON.stringify(error.more.patch)}` : "";
      this.refusals = { ...this.refusals, [each.name]: words(error) + patch };
    } finally {
      this.busy = "";
      this.goOnAt(`input[name="${each.name}"]`);
    }
  }
}

customElements.define("dyn-replicas", Replicas);

// Deploy a model.
import { html, type TemplateResult } from "lit";
import { Part, properties } from "../parts/part.ts";

class Deploy extends Part {
  static override properties = properties("namespace");
  namespace = "";

  override render(): TemplateResult {
    return html`<h1 tabindex="-1">Deploy a model</h1>`;
  }
}

customElements.define("dyn-deploy", Deploy);

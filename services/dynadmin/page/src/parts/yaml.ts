// The manifest of an object as YAML, to read and to edit. A change by another user meanwhile is shown as a conflict.
// The typed text is a draft that outlives the view until it is saved or discarded.
import { html, nothing, type TemplateResult } from "lit";
import { parse, stringify } from "../logic/yaml.ts";
import { ApiProblem, call, words, type KubeObject } from "../api/client.ts";
import { draftOf, drop, keep } from "../logic/drafts.ts";
import { editable } from "../logic/editable.ts";
import { copying } from "./badge.ts";
import { Part, properties, state } from "./part.ts";
import { say } from "./toasts.ts";

class Yaml extends Part {
  static override properties = { ...properties("path", "object", "may", "reason"), ...state("text", "etag", "problem", "conflict", "busy", "patch") };
  path = "";
  /** The current object of the view. */
  object: KubeObject | null = null;
  may = false;
  reason = "";
  private text: string | null = null;
  private original = "";
  private etag = "";
  private problem = "";
  private patch = "";
  private conflict: { text: string; etag: string } | null = null;
  private busy = false;

  override connectedCallback(): void {
    super.connectedCallback();
    const draft = draftOf(this.path);
    if (draft) ({ text: this.text, original: this.original, etag: this.etag } = draft);
    else void this.load();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    // An unedited text follows the object.
    if (!changed.has("object") || !this.object || this.busy) return;
    const stored = textOf(this.object);
    const isBehind = this.text === null ? this.problem !== "" : stored !== this.original && (this.text === this.original || this.text === stored);
    if (isBehind) void this.load(true);
  }

  private typed(text: string): void {
    this.text = text;
    keep(this.path, { text, original: this.original, etag: this.etag });
    this.dispatchEvent(new Event("drafted"));
  }

  /** Discard the draft and show the stored manifest. */
  private discard(): void {
    this.typed(this.original);
    [this.conflict, this.problem, this.patch] = [null, "", ""];
    void this.load(true);
  }

  /** Read the manifest. `follows`: an automatic read, which keeps text typed meanwhile. */
  private async load(follows = false): Promise<void> {
    const before = this.text;
    try {
      const stored = await this.read();
      if (!follows || this.text === before) this.take(stored);
    } catch (error) {
      if (!this.stop.aborted) this.problem = words(error);
    }
  }

  /** The manifest, and the version of its object. */
  private async read(): Promise<{ text: string; etag: string }> {
    const { etag, body } = await call<KubeObject>("GET", this.path, { signal: this.stop });
    return { text: textOf(body), etag };
  }

  override render(): TemplateResult {
    if (this.text === null) return html`<p class="muted" role="status">${this.problem || "Loading"}</p>`;
    const changed = this.text !== this.original;
    return html`
      ${this.may ? nothing : html`<p class="notice">${this.reason}</p>`}
      <label class="field"><span>Manifest</span>
        <textarea class="code" rows="28" spellcheck="false" ?readonly=${!this.may || this.busy} .value=${this.text} aria-describedby="yaml-problem" aria-invalid=${this.problem ? "true" : "false"}
          @input=${(event: InputEvent) => this.typed((event.target as HTMLTextAreaElement).value)}></textarea>
      </label>
      <p class="error below" role="alert" id="yaml-problem">${this.problem}</p>
      ${this.patch ? html`<label class="field"><span>Patch to commit</span><textarea class="code" rows="8" readonly .value=${this.patch}></textarea></label>` : nothing}
      ${this.conflict ? this.theirs(this.conflict) : nothing}
      <div class="actions below">
        ${copying(this.text, "Manifest")}
        <button class="button" ?disabled=${!changed} @click=${this.discard}>Discard changes</button>
        <button class="button accent" ?disabled=${!changed || !this.may || this.busy || this.conflict !== null} @click=${() => void this.save(this.etag)}>Save</button>
      </div>
    `;
  }

  private theirs(conflict: { text: string; etag: string }): TemplateResult {
    return html`<section class="notice bad" aria-label="Conflict">
      <h2>The object has changed since you started to edit</h2>
      <p>Your text is kept above. The stored manifest:</p>
      <label class="field"><span>Stored now</span><textarea class="code" rows="12" readonly .value=${conflict.text}></textarea></label>
      <div class="actions below">
        <button class="button" @click=${() => this.take(conflict)}>Use the stored manifest</button>
        <button class="button danger" ?disabled=${this.busy} @click=${() => void this.save(conflict.etag)}>Overwrite with mine</button>
      </div>
    </section>`;
  }

  private take({ text, etag }: { text: string; etag: string }): void {
    [this.original, this.etag] = [text, etag];
    this.typed(text);
    [this.conflict, this.problem, this.patch] = [null, "", ""];
  }

  /** Write the manifest. Services write the status often: a new version with an unchanged manifest is not a conflict. */
  private async put(body: unknown, etag: string, tries = 5): Promise<void> {
    try {
      await call("PUT", this.path, { body, headers: { "If-Match": etag } });
    } catch (error) {
      if (!(error instanceof ApiProblem && error.status === 412 && tries > 1)) throw error;
      const stored = await this.read();
      if (stored.text !== (this.conflict?.text ?? this.original)) throw error;
      await this.put(body, stored.etag, tries - 1);
    }
  }

  private async save(etag: string): Promise<void> {
    this.busy = true;
    this.problem = this.patch = "";
    try {
      const text = this.text ?? "";
      await this.put(parse(text), etag);
      say("Saved");
      // The view may show another object by now.
      drop(this.path, text);
      if (!this.stop.aborted) await this.load();
    } catch (error) {
      this.problem = words(error);
      if (error instanceof ApiProblem && error.more.patch) this.patch = stringify(error.more.patch);
      if (error instanceof ApiProblem && error.status === 412)
        await this.read().then((stored) => (this.conflict = stored), (unread: unknown) => (this.problem = words(unread)));
    } finally {
      this.busy = false;
      this.goOnAt("textarea");
    }
  }
}

/** The manifest of an object, as the user reads and edits it. */
function textOf(object: KubeObject): string {
  return stringify(editable(object));
}

customElements.define("dyn-yaml", Yaml);

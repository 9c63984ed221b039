// The state of the deploy view: the intent, the API's answers about it, and changes that the form does not show.
import { stringify } from "../logic/yaml.ts";
import { ApiProblem, call, passes, words, type Any, type Entry, type KubeObject, type Schemas } from "../api/client.ts";
import { applied, changes, offered, type Change } from "../logic/inverse.ts";
import { same, set } from "../logic/pointer.ts";
import { typeOf } from "./fields.ts";

export type Deployed = Schemas["Deployed"];

/** Debounce of typing, milliseconds: translating is cheap, checking in the cluster is not. */
const TRANSLATE = 250;
const ASK = 700;
/** Time until a retry if the service could not answer, milliseconds. */
const AGAIN = 3000;

/** The user's input, in the form and in the manifest. */
export interface Said {
  intent: Any;
  kept: Change[];
}

export class Draft {
  intent: Any = { mode: "objective" };
  /** Refusals of the API. */
  private refusals: Entry[] = [];
  /** By pointer: why a text is not a valid value of its field. */
  private mistyped: Record<string, string> = {};
  problem = "";
  answer: Deployed | null = null;
  kept: Change[] = [];
  /** Whether the API server and admission have checked the current intent. */
  checked = false;
  private readonly changed: () => void;
  private namespace = "";
  private timers: number[] = [];
  private round = 0;
  /** Number of the last edit of the manifest: a newer edit cancels one in progress. */
  private edits = 0;

  constructor(changed: () => void) {
    this.changed = changed;
  }

  /** Check the draft in a namespace; input from before the view was closed is kept. */
  open(namespace: string, said: Said = this.said): void {
    [this.namespace, this.intent, this.kept] = [namespace, said.intent, said.kept];
    this.refresh();
  }

  close(): void {
    this.timers.forEach((each) => window.clearTimeout(each));
    this.round += 1;
  }

  get said(): Said {
    return { intent: this.intent, kept: this.kept };
  }

  /** What must be corrected before the deployment. */
  get errors(): Entry[] {
    const mistyped = Object.entries(this.mistyped).map(([pointer, detail]) => ({ pointer, detail, source: null }));
    return [...mistyped, ...this.refusals];
  }

  replace(intent: Any): void {
    this.edits += 1;
    [this.intent, this.kept, this.mistyped] = [intent, [], {}];
    this.refresh();
  }

  give(pointer: string, value: Any): void {
    this.intent = set(this.intent, pointer, value);
    this.mistype(pointer, "");
    this.refresh();
  }

  /** A field or the manifest has an invalid text; without a detail, it is valid again. */
  mistype(pointer: string, detail: string): void {
    const { [pointer]: _, ...others } = this.mistyped;
    this.mistyped = detail ? { ...others, [pointer]: detail } : others;
    this.changed();
  }

  drop(): void {
    this.edits += 1;
    this.kept = [];
    this.refresh();
  }

  /** Apply an edited manifest: first to the fields; the rest is kept as changes. */
  async edited(manifest: Any): Promise<void> {
    const before = this.answer;
    if (!before) return;
    this.mistyped = {};
    this.changed();
    const shown = applied(before.manifest, this.kept);
    if (same(shown, manifest)) return;
    const edit = ++this.edits;
    const filled = (): Any => offered(this.intent, shown, manifest, before.origins, typeOf);
    // If the fields cannot express the edit, all of it is kept as changes, and the API server checks them.
    const translated = await this.translated(filled()).catch(() => null);
    // A later edit or another intent has replaced this one.
    if (edit !== this.edits) return;
    // Into the current form: the user may have typed there meanwhile.
    if (translated) this.intent = filled();
    this.kept = changes((translated?.body ?? before).manifest, manifest);
    this.refresh();
  }

  /** The manifest with the kept changes. */
  get manifest(): KubeObject | null {
    return this.answer ? applied(this.answer.manifest, this.kept) : null;
  }

  get text(): string {
    if (!this.answer) return "";
    return this.kept.length ? stringify(this.manifest) : this.answer.yaml;
  }

  private get collection(): string {
    return this.intent.mode === "graph" ? "deployments" : "requests";
  }

  private translated(intent: Any): Promise<{ body: Deployed }> {
    return call<Deployed>("POST", `/namespaces/${this.namespace}/deploy`, { body: intent, query: { dryRun: "client" } });
  }

  /** Check the intent after a pause: translate it, then let the cluster check it. */
  private refresh(): void {
    this.close();
    const round = this.round;
    this.checked = false;
    this.changed();
    if (!this.intent.name || !this.intent.model?.name) {
      [this.refusals, this.problem, this.answer] = [[], "", null];
      this.changed();
      return;
    }
    this.timers = [window.setTimeout(() => void this.translate(round), TRANSLATE)];
  }

  private async translate(round: number): Promise<void> {
    try {
      const { body } = await this.translated(this.intent);
      if (round !== this.round) return;
      this.answer = { ...body, gpus: this.answer?.gpus ?? null };
      [this.refusals, this.problem] = [[], ""];
      this.timers.push(window.setTimeout(() => void this.check(round), ASK - TRANSLATE));
    } catch (error) {
      if (round === this.round) this.refused(error, round);
    }
    this.changed();
  }

  private async check(round: number): Promise<void> {
    try {
      const { body } = await this.send("server");
      if (round !== this.round) return;
      if (body) this.answer = { ...body, tree: body.tree ?? this.answer?.tree ?? null };
      this.checked = true;
    } catch (error) {
      if (round === this.round) this.refused(error, round);
    }
    this.changed();
  }

  /** Deploy the draft. Returns the object's path; throws ApiProblem. */
  async deploy(): Promise<{ namespace: string; collection: string; name: string }> {
    // Copy the current state: the user may change the namespace or the kind before the answer arrives.
    const { round, namespace, collection } = this;
    try {
      const { name } = await this.send("");
      return { namespace, collection, name };
    } catch (error) {
      this.refused(error, round);
      this.changed();
      throw error;
    }
  }

  /** Sends the object itself if there are kept changes; otherwise the intent, whose answer also reports whether GPUs fit. */
  private async send(dryRun: "" | "server"): Promise<{ body: Deployed | null; name: string }> {
    const { kept } = this;
    const path = `/namespaces/${this.namespace}`;
    const objects = `${path}/${this.collection}`;
    if (!kept.length) {
      const { body } = await call<Deployed>("POST", `${path}/deploy`, { body: this.intent, query: { dryRun } });
      return { body, name: body.manifest.metadata.name };
    }
    // For the current intent: the shown answer may be older than the last keystroke.
    const { body } = await this.translated(this.intent);
    const manifest = applied(body.manifest, kept);
    await call("POST", objects, { body: manifest, query: { dryRun: dryRun ? true : undefined } });
    return { body: null, name: manifest.metadata.name };
  }

  private refused(error: unknown, round: number): void {
    if (passes(error) || !(error instanceof ApiProblem)) {
      this.problem = words(error);
      // The form is valid: the check repeats without a change by the user.
      if (round === this.round) this.timers.push(window.setTimeout(() => this.refresh(), AGAIN));
      return;
    }
    if (error.kind === "already-exists") {
      [this.refusals, this.problem] = [[{ pointer: "/name", detail: `${error.message}; choose another name`, source: null }], ""];
      return;
    }
    // Show a refusal of the object at the form field from which its path came.
    const origins = this.answer?.origins ?? {};
    this.refusals = error.errors.map((each) => ({ ...each, pointer: originOf(each.pointer, origins) }));
    this.problem = this.refusals.length && this.refusals.every((each) => each.pointer) ? "" : error.message;
  }
}

function originOf(pointer: string, origins: Record<string, string>): string {
  if (!pointer.startsWith("/spec") && !pointer.startsWith("/metadata")) return pointer;
  for (let place = pointer; place; place = place.slice(0, place.lastIndexOf("/"))) if (origins[place]) return origins[place]!;
  return pointer;
}

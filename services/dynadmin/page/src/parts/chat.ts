// A chat with the graph's model, through its frontend: streamed, with the times that a user gets.
import { html, nothing, type TemplateResult } from "lit";
import { ApiProblem, get, passes, words, type Any } from "../api/client.ts";
import { follow } from "../api/stream.ts";
import { keepMessage, messageOf } from "../logic/drafts.ts";
import { figure } from "../logic/format.ts";
import type { State } from "../logic/kinds.ts";
import { Part, properties, state } from "./part.ts";

/** Interval of reading the frontend's models until it serves one, milliseconds. */
const AGAIN = 5000;

interface Message {
  role: "user" | "assistant";
  content: string;
  reasoning?: string;
  figures?: Any;
  problem?: string;
}

class Chat extends Part {
  static override properties = { ...properties("path", "graph"), ...state("messages", "models", "model", "busy", "problem", "longest") };
  path = "";
  /** State of the graph. */
  graph: State = { text: "", tone: "idle", why: "" };
  private messages: Message[] = [];
  private models: string[] = [];
  private model = "";
  private busy = false;
  private problem = "";
  private longest = 256;
  private answering = new AbortController();
  private mayPass = true;

  override connectedCallback(): void {
    super.connectedCallback();
    this.every(AGAIN, () => (this.models.length || !this.mayPass ? undefined : this.ask()));
  }

  override willUpdate(changed: Map<string, unknown>): void {
    const before = changed.get("graph") as State | undefined;
    // When a graph becomes ready, it serves new models.
    if (this.hasUpdated && changed.has("graph") && before?.tone !== this.graph.tone) void this.ask();
  }

  private ask(): Promise<void> {
    return get<{ models: string[] }>(`${this.path}/chat`, { signal: this.stop }).then(
      ({ models }) => {
        [this.models, this.mayPass] = [models, true];
        if (!models.includes(this.model)) this.model = models[0] ?? "";
        this.problem = "";
        if (!models.length) this.problem = "The frontend serves no model yet. Wait until the graph is ready.";
      },
      (error: unknown) => {
        [this.problem, this.mayPass] = [words(error), passes(error)];
      },
    );
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.answering.abort();
    if (this.hasUpdated) keepMessage(this.path, this.area.value);
  }

  override firstUpdated(): void {
    this.area.value = messageOf(this.path);
  }

  private get area(): HTMLTextAreaElement {
    return this.querySelector<HTMLTextAreaElement>("textarea[name=message]")!;
  }

  override render(): TemplateResult {
    return html`<div class="tools">
        <label class="inline">Model <select @change=${(event: Event) => (this.model = (event.target as HTMLSelectElement).value)}>
          ${this.models.length ? nothing : html`<option value="">as the frontend says</option>`}
          ${this.models.map((each) => html`<option .selected=${each === this.model}>${each}</option>`)}
        </select></label>
        <label class="inline">Maximum tokens <input type="number" min="1" max="100000" .value=${String(this.longest)} @input=${(event: InputEvent) => (this.longest = (event.target as HTMLInputElement).valueAsNumber || 256)} /></label>
        ${this.messages.length ? html`<button class="button" @click=${this.clear}>New chat</button>` : nothing}
      </div>
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}${this.graph.tone === "good" ? nothing : html`<br />The graph is not ready (${this.graph.text}); the overview shows the reason.`}</p>` : nothing}
      <ol class="chat" aria-label="Chat" aria-live="polite" aria-busy=${this.busy}>${this.messages.map((each) => this.message(each))}</ol>
      <form class="say" @submit=${this.send}>
        <textarea name="message" rows="3" required aria-label="Your message" placeholder="Type a message. Enter sends, Shift+Enter starts a new line." @keydown=${this.key}></textarea>
        ${this.busy
          ? html`<button type="button" class="button" @click=${() => this.answering.abort()}>Stop</button>`
          : html`<button class="button accent">Send</button>`}
      </form>`;
  }

  private message(each: Message): TemplateResult {
    const { figures } = each;
    return html`<li class=${each.role}>
      <span class="hidden">${each.role === "user" ? "You" : "The model"}:</span>
      ${each.reasoning ? html`<p class="muted">${each.reasoning}</p>` : nothing}
      <p>${each.content}${!each.content && !each.problem && !each.reasoning ? html`<span class="muted">…</span>` : nothing}</p>
      ${each.problem ? html`<p class="error">${each.problem}</p>` : nothing}
      ${figures
        ? html`<p class="times">TTFT ${figure(figures.ttftMs, "ms")} · ITL ${figure(figures.itlMs, "ms")} · p99 ${figure(figures.itlP99Ms, "ms")} · ${figures.completionTokens} tokens in ${figure(figures.totalMs / 1000, "s")}</p>`
        : nothing}
    </li>`;
  }

  private key(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    (event.target as HTMLTextAreaElement).form!.requestSubmit();
  }

  private clear(): void {
    this.answering.abort();
    this.messages = [];
    this.problem = "";
  }

  private async send(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const { area } = this;
    const content = area.value.trim();
    if (!content || this.busy) return;
    area.value = "";
    const history = [...this.messages.filter((each) => each.content), { role: "user" as const, content }];
    const answer: Message = { role: "assistant", content: "" };
    this.messages = [...history, answer];
    this.busy = true;
    this.answering = new AbortController();
    const body = {
      messages: history.map((each) => ({ role: each.role, content: each.content })),
      maxTokens: this.longest,
      ...(this.model ? { model: this.model } : {}),
    };
    try {
      await follow(`${this.path}/chat`, { method: "POST", body, again: false, onEvent: ({ event: name, data }) => this.took(answer, name, JSON.parse(data)) }, this.answering.signal);
      if (!answer.figures && !answer.problem) answer.problem = this.answering.signal.aborted ? "Stopped." : "The answer was interrupted.";
    } catch (error) {
      answer.problem = words(error);
      // Without a session, nothing was sent and the view may be removed.
      if (error instanceof ApiProblem && error.status === 401) keepMessage(this.path, (area.value ||= content));
    } finally {
      this.busy = false;
      this.messages = [...this.messages];
    }
  }

  private took(answer: Message, event: string, data: Any): void {
    if (event === "delta") {
      answer.content += data.text ?? "";
      if (data.reasoning) answer.reasoning = (answer.reasoning ?? "") + data.reasoning;
    } else if (event === "end") answer.figures = data;
    else if (event === "failed" || event === "error" || event === "unauthorized") answer.problem = data.detail;
    this.messages = [...this.messages];
  }
}

customElements.define("dyn-chat", Chat);

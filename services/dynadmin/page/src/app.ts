// The shell: the user, the sidebar, and the view that the address names.
import { html, nothing, type TemplateResult } from "lit";
import { keyed } from "lit/directives/keyed.js";
import { ApiProblem, hooks, words } from "./api/client.ts";
import { current, forget, namespaces, signOut, type Session } from "./api/session.ts";
import { dropOthers, isFilled } from "./deploy/left.ts";
import { begin, dropAll, unsaved } from "./logic/drafts.ts";
import { count } from "./logic/format.ts";
import { KINDS } from "./logic/kinds.ts";
import { COLLECTIONS, format, parse, type Route } from "./logic/route.ts";
import { ask } from "./parts/dialog.ts";
import { icon } from "./parts/icons.ts";
import { Part, state } from "./parts/part.ts";
import { nextTheme, theme } from "./parts/theme.ts";
import { say } from "./parts/toasts.ts";
import "./views/signin.ts";
import "./views/list.ts";
import "./views/detail.ts";
import "./deploy/view.ts";

const LAST = "dynadmin.namespace";
/** Namespaces change: interval of reading them, and the shortest interval while the user chooses one. Milliseconds. */
const [AGAIN, SOON] = [60_000, 2_000];

class App extends Part {
  static override properties = state("session", "route", "spaces", "problem", "isOpen", "started");

  private session: Session | null = null;
  private route: Route = parse(location.hash);
  private spaces: string[] | null = null;
  private problem = "";
  private isOpen = false;
  private started = false;
  private asked = 0;
  /** Address of the last list, with its filter and order. */
  private list = "";

  override connectedCallback(): void {
    super.connectedCallback();
    hooks.signedOut = (why) => {
      // If several requests are refused, only the first reports it; none does after the user has signed out.
      if (!this.session) return;
      [this.session, this.spaces, this.problem] = [null, null, why];
      forget();
      // A dialog would cover the sign-in.
      document.querySelectorAll("dialog").forEach((each) => each.close());
      this.toHeading(true);
    };
    hooks.replaced = () => {
      forget();
      void this.begin();
    };
    window.addEventListener("hashchange", ({ oldURL }) => this.navigated(new URL(oldURL).hash));
    window.addEventListener("beforeunload", (event) => {
      if (unsaved() || isFilled()) event.preventDefault();
    });
    this.every(AGAIN, () => this.loadAgain());
    void this.begin();
  }

  private async begin(): Promise<void> {
    try {
      this.session = await current();
      this.problem = "";
      if (this.session) {
        begin(this.session.user);
        dropOthers(this.session.user);
        await this.load();
      }
    } catch (error) {
      // If the session has ended meanwhile, the page already shows it.
      if (!(error instanceof ApiProblem && error.status === 401)) {
        this.problem = words(error);
        window.setTimeout(() => void this.begin(), 3000);
        // Whether there is a session is not known: the sign-in would mislead the user.
        if (!this.session) return;
      }
    }
    this.started = true;
  }

  private async signedIn(): Promise<void> {
    await this.begin();
    if (!this.session && !this.problem) this.problem = "The browser did not store the session. Browsers store sessions of pages over https or on localhost, if cookies are allowed.";
    this.toHeading(true);
  }

  private async load(): Promise<void> {
    const { session } = this;
    this.asked = Date.now();
    const spaces = await namespaces();
    if (session !== this.session) return;
    this.spaces = spaces;
    this.toNamespace();
  }

  /** Open the last namespace if the address names none: the list of namespaces shows one, so the user could not choose it. */
  private toNamespace(): void {
    // Read the current address: the user may have navigated while the namespaces were read.
    if (!this.spaces || parse(location.hash).namespace) return;
    const last = localStorage.getItem(LAST) ?? "";
    const first = this.spaces.includes(last) ? last : this.spaces[0];
    if (first) location.hash = format({ namespace: first });
  }

  /** Read the current namespaces; if they cannot be listed, the known ones stay. */
  private loadAgain(): Promise<void> | void {
    if (this.session && this.spaces && Date.now() - this.asked > SOON) return this.load().catch(() => undefined);
  }

  private navigated(from: string): void {
    const before = this.route;
    if (before.view === "list") this.list = from;
    this.route = parse(location.hash);
    this.isOpen = false;
    this.toNamespace();
    if (this.route.namespace) localStorage.setItem(LAST, this.route.namespace);
    const isOther = ["view", "namespace", "kind", "name"].some((key) => before[key as "view"] !== this.route[key as "view"]);
    // Focus the new view for screen readers and the keyboard; but not while the user steps through the list of namespaces.
    if (isOther && document.activeElement?.tagName !== "SELECT") this.toHeading();
  }

  /** Focus the heading of the current view; with `isLost` only if the focused element is gone and nothing else has the focus. */
  private toHeading(isLost = false): void {
    void this.updateComplete.then(() =>
      window.setTimeout(() => {
        if (!isLost || document.activeElement === document.body) this.querySelector<HTMLElement>("main h1")?.focus();
      }),
    );
  }

  override render(): TemplateResult {
    if (!this.started) return html`<p class="starting" role="status">${this.problem ? `Trying again: ${this.problem}` : "Loading"}</p>`;
    if (!this.session)
      return html`<dyn-sign-in .problem=${this.problem} @signed-in=${() => void this.signedIn()}></dyn-sign-in>`;
    return html`
      <a class="skip" href="#main" @click=${this.skip}>Skip to the content</a>
      <div class="shell ${this.isOpen ? "open" : ""}">
        <header class="bar">
          <button class="icon" aria-label="Menu" aria-expanded=${this.isOpen} @click=${() => (this.isOpen = !this.isOpen)}>
            ${icon("menu")}
          </button>
          <span class="brand">${icon("logo")} Dynadmin</span>
        </header>
        <nav class="side" aria-label="Main">${this.side(this.session)}</nav>
        <main id="main" tabindex="-1">${keyed(this.session.user, this.view())}</main>
      </div>
      <dyn-toasts></dyn-toasts>
    `;
  }

  private side(session: Session): TemplateResult {
    const namespace = this.route.namespace;
    const all = this.spaces ?? [];
    return html`
      <a class="brand" href=${format({ namespace })}>${icon("logo")} Dynadmin</a>
      <label class="space">
        <span>Namespace</span>
        <select @focus=${() => this.loadAgain()} @change=${(event: Event) => (location.hash = format({ ...this.route, name: "", query: "", namespace: (event.target as HTMLSelectElement).value }))}>
          ${[...new Set([...all, ...(namespace ? [namespace] : [])])].map((each) => html`<option .selected=${each === namespace}>${each}</option>`)}
        </select>
      </label>
      <a class="button accent" href=${format({ view: "deploy", namespace })} aria-current=${this.route.view === "deploy" ? "page" : nothing}>
        ${icon("plus")} Deploy a model
      </a>
      <ul>
        ${COLLECTIONS.map((kind) => {
          const here = this.route.view !== "deploy" && this.route.kind === kind;
          return html`<li>
            <a href=${format({ namespace, kind })} aria-current=${here ? "page" : nothing}>${icon(kind)} ${KINDS[kind].title}</a>
          </li>`;
        })}
      </ul>
      <div class="who">
        <span title=${session.user}>${session.user.split(":").pop()}</span>
        <button class="icon" aria-label=${`Colours: ${theme()}`} title=${`Colours: ${theme()}`} @click=${this.changeTheme}>${icon("theme")}</button>
        <button class="icon" aria-label="Sign out" title="Sign out" @click=${() => void this.signOut()}>${icon("out")}</button>
      </div>
    `;
  }

  private view(): TemplateResult {
    const { view, namespace, kind, name, tab, query } = this.route;
    if (!namespace) {
      if (this.problem) return html`<h1 tabindex="-1">Namespaces cannot be listed</h1><p class="notice bad" role="alert">${this.problem}</p>`;
      const none = this.spaces?.length === 0;
      return html`<h1 tabindex="-1">${none ? "Nothing to see yet" : "Loading"}</h1>
        ${none ? html`<p class="lead">You may not list graphs in any namespace. Request a role; <code>kubectl auth can-i list dynamographdeployments</code> shows your rights.</p>` : nothing}`;
    }
    if (view === "deploy") return html`<dyn-deploy .namespace=${namespace} .user=${this.session?.user ?? ""}></dyn-deploy>`;
    const all = format({ namespace, kind });
    const back = this.list.split("?")[0] === all ? this.list : all;
    // One element per object: late data of one object must not appear for another.
    const key = format({ namespace, kind, name });
    if (view === "detail") return html`${keyed(key, html`<dyn-detail .namespace=${namespace} .kind=${kind} .name=${name} .tab=${tab} .query=${query} .back=${back}></dyn-detail>`)}`;
    return html`<dyn-list .namespace=${namespace} .kind=${kind} .query=${query}></dyn-list>`;
  }

  private async signOut(): Promise<void> {
    try {
      if (!unsaved()) await signOut();
      else await ask({ title: "Sign out?", body: html`<p>${count(unsaved(), "manifest")} with changes that are not saved. They are lost when you sign out.</p>`, act: "Sign out", danger: true, run: signOut });
      if (this.session) return;
      dropAll();
      // The dialog had the focus.
      this.toHeading(true);
    } catch (error) {
      say(`You are still signed in. ${words(error)}`, true);
    }
  }

  private skip(event: Event): void {
    event.preventDefault();
    this.querySelector<HTMLElement>("main")?.focus();
  }

  private changeTheme(): void {
    nextTheme();
    this.requestUpdate();
  }
}

customElements.define("dyn-app", App);

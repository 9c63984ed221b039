// Sign in: with a token of the cluster, or with the organisation's identity provider if one is configured.
import { html, nothing, type TemplateResult } from "lit";
import { get, words } from "../api/client.ts";
import { signIn } from "../api/session.ts";
import { carry } from "../deploy/left.ts";
import { tokenOf } from "../logic/text.ts";
import { icon } from "../parts/icons.ts";
import { Part, properties, state } from "../parts/part.ts";

class SignIn extends Part {
  static override properties = { ...properties("problem"), ...state("refused", "busy", "provider") };
  problem = "";
  private refused = "";
  private busy = false;
  private provider = "";

  override connectedCallback(): void {
    super.connectedCallback();
    document.title = "Sign in · Dynadmin";
    // The organisation's identity provider, if the service has one.
    get<{ login?: string | null }>("/session/ways")
      .then((answer) => (this.provider = answer.login ? `${answer.login}?returnTo=${encodeURIComponent(`/${location.hash}`)}` : ""))
      .catch(() => (this.provider = ""));
  }

  override render(): TemplateResult {
    return html`<main class="sign-in">
      <form @submit=${this.submit}>
        <div class="brand">${icon("logo")} Dynadmin</div>
        <h1 tabindex="-1">Sign in</h1>
        <p>The page acts with your own rights in the cluster.</p>
        ${this.provider ? html`<a class="button accent wide" href=${this.provider} @click=${carry}>Sign in with your organisation</a><p class="or">or</p>` : nothing}
        <label class="field">
          <span>Token</span>
          <textarea name="token" rows="4" required autocomplete="off" spellcheck="false" aria-describedby="token-help token-error" aria-invalid=${this.refused ? "true" : "false"}></textarea>
        </label>
        <p class="help" id="token-help">For example from <code>kubectl create token NAME</code>. The token is encrypted in a cookie that scripts cannot read.</p>
        <p class="error" id="token-error" role="alert">${this.refused || this.problem}</p>
        <button class="button accent wide" ?disabled=${this.busy}>${this.busy ? "Signing in" : "Sign in"}</button>
      </form>
    </main>`;
  }

  private async submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const area = this.querySelector<HTMLTextAreaElement>("textarea")!;
    this.busy = true;
    this.refused = "";
    try {
      await signIn(tokenOf(area.value));
      area.value = "";
      this.dispatchEvent(new CustomEvent("signed-in"));
    } catch (error) {
      this.refused = words(error);
      area.focus();
    } finally {
      this.busy = false;
    }
  }
}

customElements.define("dyn-sign-in", SignIn);

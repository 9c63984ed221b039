// Confirmations: a native dialog of the browser, with its keyboard and focus handling.
import { html, render, type TemplateResult } from "lit";
import { words } from "../api/client.ts";
import { say } from "./toasts.ts";

export interface Question {
  title: string;
  body: TemplateResult;
  act: string;
  danger?: boolean;
  /** Runs when the user confirms; an error is shown, and the dialog stays open. */
  run: (dialog: HTMLDialogElement) => Promise<void>;
}

/** Ask the user. Resolves when the dialog is closed and the action has ended: whether it was done. */
export function ask(question: Question): Promise<boolean> {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "dialog-title");
  document.body.append(dialog);
  let done = false;
  let busy = false;
  let problem = "";
  let begun = Promise.resolve();
  const draw = (): void => {
    render(
      html`<form method="dialog" @submit=${(event: Event) => submit(event)}>
        <h2 id="dialog-title">${question.title}</h2>
        ${question.body}
        <p class="error" role="alert">${problem}</p>
        <div class="actions">
          <button type="button" class="button" @click=${() => dialog.close()}>Cancel</button>
          <button class="button ${question.danger ? "danger" : "accent"}" aria-disabled=${busy}>${question.act}</button>
        </div>
      </form>`,
      dialog,
    );
  };
  // The button is not disabled meanwhile: it would lose the focus.
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!busy) begun = act();
  };
  const act = async (): Promise<void> => {
    busy = true;
    problem = "";
    draw();
    try {
      await question.run(dialog);
      done = true;
      dialog.close();
    } catch (error) {
      problem = words(error);
      busy = false;
      draw();
    }
  };
  draw();
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      const wasBusy = busy;
      void begun.then(() => {
        // The dialog is closed and cannot show the error.
        if (wasBusy && !done) say(problem, true);
        resolve(done);
      });
    });
  });
}

// Manifests that a person has changed and not saved yet, by the paths of their objects. They are kept in memory alone. Pure.

export interface ManifestDraft {
  text: string;
  /** What was stored when the person began, and its version. */
  original: string;
  etag: string;
}

const drafts = new Map<string, ManifestDraft>();
/** Messages to models that were typed and not sent, by the paths of their chats. */
const messages = new Map<string, string>();
let whose = "";

/** A session begins: drafts of another person are dropped. */
export function begin(user: string): void {
  if (user !== whose) dropAll();
  whose = user;
}

export function draftOf(path: string): ManifestDraft | undefined {
  return drafts.get(path);
}

/** Keep a draft, unless it is what was stored. */
export function keep(path: string, draft: ManifestDraft): void {
  if (draft.text === draft.original) drafts.delete(path);
  else drafts.set(path, draft);
}

/** The person is done with a draft; with `text` only where this is what it still says. */
export function drop(path: string, text?: string): void {
  if (text === undefined || drafts.get(path)?.text === text) drafts.delete(path);
}

export function dropAll(): void {
  drafts.clear();
  messages.clear();
}

export function messageOf(path: string): string {
  return messages.get(path) ?? "";
}

/** Keep a message that is not sent, which may be empty. */
export function keepMessage(path: string, text: string): void {
  messages.set(path, text);
}

/** How many there are. */
export function unsaved(): number {
  return drafts.size;
}

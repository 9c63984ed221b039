// Manifests with unsaved changes, by the paths of their objects. Kept only in memory. Pure.

export interface ManifestDraft {
  text: string;
  /** The stored manifest when the user started to edit, and its version. */
  original: string;
  etag: string;
}

const drafts = new Map<string, ManifestDraft>();
/** Unsent messages to models, by the paths of their chats. */
const messages = new Map<string, string>();
let whose = "";

/** A session starts: drop the drafts of another user. */
export function begin(user: string): void {
  if (user !== whose) dropAll();
  whose = user;
}

export function draftOf(path: string): ManifestDraft | undefined {
  return drafts.get(path);
}

/** Keep a draft, unless it equals the stored manifest. */
export function keep(path: string, draft: ManifestDraft): void {
  if (draft.text === draft.original) drafts.delete(path);
  else drafts.set(path, draft);
}

/** Drop a draft; with `text`, only if the draft still has this text. */
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

/** Keep an unsent message, which may be empty. */
export function keepMessage(path: string, text: string): void {
  messages.set(path, text);
}

/** The number of drafts. */
export function unsaved(): number {
  return drafts.size;
}

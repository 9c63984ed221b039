// Who changed an object. Pure.

/** A field manager as a user reads it. */
export function writerOf(manager: string): string {
  if (manager.startsWith("dynadmin/")) return manager.slice("dynadmin/".length);
  if (manager.startsWith("dynamo-")) return `the platform (${manager})`;
  return manager;
}

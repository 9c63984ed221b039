// Who changed an object. Pure.

/** A field manager as a user reads it. */
export function writerOf(manager: string): string {
  if (manager.startsWith("dynadmin/")) return manager.slice("dynadmin/".length);
  if (manager.startsWith("dynamo-")) return `the platform (${manager})`;
  return manager;
}

/** The fields that a user chose: without kubectl's copy of the manifest. */
export function fieldsOf(fields: string[]): string[] {
  const own = fields.filter((each) => !each.endsWith("/last-applied-configuration"));
  return own.length ? own : fields;
}

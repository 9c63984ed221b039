// The state of a watched collection: what the stream says, each object once, in order of names. Pure.
import type { KubeObject } from "../api/client.ts";

export class Collection {
  private known = new Map<string, KubeObject>();
  private fresh: Map<string, KubeObject> | null = new Map();
  synced = false;
  private held = false;

  /** A connection begins. One that does not resume replaces everything once it is synced. */
  opened(resumed: boolean): void {
    this.fresh = resumed ? null : new Map();
  }

  /** Take an event; whether there is something new to show. */
  take(event: string, object: KubeObject): boolean {
    if (event === "synced") {
      if (this.fresh) this.known = this.fresh;
      this.fresh = null;
      this.synced = true;
      return true;
    }
    if (event === "ADDED") this.held = true;
    const target = this.fresh ?? this.known;
    if (event === "DELETED") target.delete(object.metadata.name);
    else if (event === "ADDED" || event === "MODIFIED") target.set(object.metadata.name, object);
    else return false;
    return this.fresh === null;
  }

  get items(): KubeObject[] {
    return [...this.known.values()].sort((a, b) => String(a.metadata.name).localeCompare(String(b.metadata.name)));
  }

  /** There was something in it, and all of it was deleted. */
  get gone(): boolean {
    return this.synced && this.held && this.known.size === 0;
  }

  get(name: string): KubeObject | undefined {
    return this.known.get(name);
  }
}

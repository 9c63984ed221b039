// The state of a watched collection: the objects of the stream, each once, ordered by name. Pure.
import type { KubeObject } from "../api/client.ts";
import { Snapshot } from "./snapshot.ts";

export class Collection {
  private readonly objects = new Snapshot<KubeObject>();
  private held = false;
  /** Ordered by name, cached until a change. */
  private sorted: KubeObject[] | null = null;

  /** A connection starts. If it does not resume, it replaces everything once it is synced. */
  opened(resumed: boolean): void {
    this.objects.opened(resumed);
  }

  /** Apply an event. Returns whether the display changes. */
  take(event: string, object: KubeObject): boolean {
    this.sorted = null;
    if (event === "synced") {
      this.objects.whole();
      return true;
    }
    if (event === "ADDED") this.held = true;
    if (event === "DELETED") return this.objects.drop(object.metadata.name);
    return (event === "ADDED" || event === "MODIFIED") && this.objects.put(object.metadata.name, object);
  }

  get synced(): boolean {
    return this.objects.synced;
  }

  get items(): KubeObject[] {
    return (this.sorted ??= this.objects.items.sort((a, b) => String(a.metadata.name).localeCompare(String(b.metadata.name))));
  }

  /** The collection had objects, and all were deleted. */
  get gone(): boolean {
    return this.synced && this.held && this.objects.items.length === 0;
  }

  get(name: string): KubeObject | undefined {
    return this.objects.get(name);
  }
}

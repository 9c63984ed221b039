// The content of a stream: each item once, by its key. A restarted stream replaces everything once it is complete. Pure.

export class Snapshot<T> {
  private known = new Map<string, T>();
  private fresh: Map<string, T> | null = new Map();
  private readonly most: number;
  synced = false;

  /** `most`: the number of items to keep; the oldest are dropped. */
  constructor(most = Infinity) {
    this.most = most;
  }

  /** A connection starts. `resumed`: whether it continues after the known items. */
  opened(resumed: boolean): void {
    this.fresh = resumed ? null : new Map();
  }

  /** The stream has sent all existing items. */
  whole(): void {
    if (this.fresh) this.known = this.fresh;
    this.fresh = null;
    this.synced = true;
  }

  /** Add an item, or a newer version, which becomes the latest. Returns whether the display changes. */
  put(key: string, item: T): boolean {
    const target = this.fresh ?? this.known;
    target.delete(key);
    target.set(key, item);
    if (target.size > this.most) target.delete(target.keys().next().value!);
    return this.fresh === null;
  }

  drop(key: string): boolean {
    (this.fresh ?? this.known).delete(key);
    return this.fresh === null;
  }

  get(key: string): T | undefined {
    return this.known.get(key);
  }

  /** In order of arrival. */
  get items(): T[] {
    return [...this.known.values()];
  }
}

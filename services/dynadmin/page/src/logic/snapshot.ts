// What a stream has said: each thing once, by its key. A stream that begins again replaces all, once it is whole. Pure.

export class Snapshot<T> {
  private known = new Map<string, T>();
  private fresh: Map<string, T> | null = new Map();
  private readonly most: number;
  synced = false;

  /** `most`: as many are kept, and those that came first go. */
  constructor(most = Infinity) {
    this.most = most;
  }

  /** A connection begins, with whether it goes on after what is known. */
  opened(resumed: boolean): void {
    this.fresh = resumed ? null : new Map();
  }

  /** The stream has said all that there is. */
  whole(): void {
    if (this.fresh) this.known = this.fresh;
    this.fresh = null;
    this.synced = true;
  }

  /** Something new, or a newer version of it, which is the latest then; whether there is something new to show. */
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

  /** In the order in which they came. */
  get items(): T[] {
    return [...this.known.values()];
  }
}

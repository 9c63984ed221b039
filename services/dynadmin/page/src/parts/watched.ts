// A live collection as a reactive controller: its element renders when the collection changes.
import type { ReactiveController } from "lit";
import { ApiProblem, words, type KubeObject } from "../api/client.ts";
import { follow, type Line } from "../api/stream.ts";
import { Collection } from "../logic/collection.ts";
import type { Part } from "./part.ts";

export class Watched implements ReactiveController {
  private readonly host: Part;
  private collection = new Collection();
  private tasks = new AbortController();
  private path = "";
  line: Line = "connecting";
  problem = "";

  constructor(host: Part) {
    this.host = host;
    host.addController(this);
  }

  /** Follow a collection, or one object of it. The same path again changes nothing. */
  watch(path: string): void {
    if (path === this.path && !this.tasks.signal.aborted) return;
    this.hostDisconnected();
    this.path = path;
    this.tasks = new AbortController();
    const collection = (this.collection = new Collection());
    this.problem = "";
    const changed = (): void => this.host.drawSoon();
    follow(
      path,
      {
        query: { watch: true },
        again: true,
        onOpen: (resumed) => collection.opened(resumed),
        onEvent: ({ event, data }) => {
          const isShown = event !== "unauthorized" && event !== "error";
          if (!isShown) this.problem = JSON.parse(data).detail;
          if (!isShown || collection.take(event, JSON.parse(data) as KubeObject)) changed();
        },
        onLine: (line, detail) => {
          this.line = line;
          if (line === "live") this.problem = "";
          else if (detail) this.problem = detail;
          changed();
        },
      },
      this.tasks.signal,
    ).catch((error: unknown) => {
      const more = error instanceof ApiProblem && error.status === 403 ? ". Request this right, or choose another namespace." : "";
      this.problem = words(error) + more;
      changed();
    });
  }

  get synced(): boolean {
    return this.collection.synced;
  }

  /** The object existed, and was deleted. */
  get gone(): boolean {
    return this.collection.gone;
  }

  get items(): KubeObject[] {
    return this.collection.items;
  }

  get(name: string): KubeObject | undefined {
    return this.collection.get(name);
  }

  hostConnected(): void {
    if (this.path) this.watch(this.path);
  }

  hostDisconnected(): void {
    this.tasks.abort();
  }
}

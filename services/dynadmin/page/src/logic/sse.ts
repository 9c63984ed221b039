// Parses server-sent events from chunks of text. Pure.

export interface Event {
  event: string;
  data: string;
  id: string;
}

/** Collects chunks and returns complete events. Heartbeats (comments) are not events. */
export class Parser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private id = "";

  feed(text: string): Event[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    const events: Event[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length) events.push({ event: this.event || "message", data: this.data.join("\n"), id: this.id });
        this.event = this.id = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") this.event = value;
      else if (name === "data") this.data.push(value);
      else if (name === "id") this.id = value;
    }
    return events;
  }
}

/** Back-off before the next attempt, milliseconds: doubles from half a second to fifteen, with jitter. */
export function backoff(attempt: number, random: () => number): number {
  const longest = Math.min(15_000, 500 * 2 ** attempt);
  return longest / 2 + (random() * longest) / 2;
}

// Lines of logs: bounded, each once. Pure.

export interface LogLine {
  time: string;
  pod: string;
  container: string;
  component: string;
  text: string;
}

export interface Kept extends LogLine {
  key: number;
  notice: boolean;
}

/** Number of lines that the page keeps; older lines are dropped. */
export const KEPT = 5000;

export class LogLines {
  private lines: Kept[] = [];
  private next = 0;
  private recent = new Set<string>();
  /** Id of the last line, after which a stream resumes. */
  last = "";

  /** Add a line; a repeated line changes nothing. */
  take(line: LogLine, id: string, notice: boolean): boolean {
    if (id) this.last = id;
    const key = `${line.time}\0${line.pod}\0${line.container}\0${line.text}`;
    if (this.recent.has(key)) return false;
    this.recent.add(key);
    this.lines.push({ ...line, key: this.next++, notice });
    if (this.lines.length > KEPT) {
      for (const gone of this.lines.splice(0, KEPT / 10)) this.recent.delete(`${gone.time}\0${gone.pod}\0${gone.container}\0${gone.text}`);
    }
    return true;
  }

  matching(search: string): Kept[] {
    const lowered = search.toLowerCase();
    if (!lowered) return this.lines;
    return this.lines.filter((each) => `${each.pod} ${each.text}`.toLowerCase().includes(lowered));
  }
}

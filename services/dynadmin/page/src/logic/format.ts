// Figures and times as text for users. Pure.

/** How long ago, in the largest unit that fits. */
export function age(time: string | undefined, now: number): string {
  const then = time ? Date.parse(time) : NaN;
  if (Number.isNaN(then)) return "";
  return span(Math.max(0, (now - then) / 1000));
}

export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** A figure with as many digits as it needs; a dash without a value. */
export function figure(value: unknown, unit = ""): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: 0 });
  return unit ? `${text} ${unit}` : text;
}

export function clock(time: string | number | undefined): string {
  const date = new Date(time ?? NaN);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString("en-GB");
}

/** A time of an axis: with its day if the axis is longer than a day. */
export function axisTime(span: number): (at: number) => string {
  const day = span > 86_400_000 ? { month: "short", day: "numeric" } as const : {};
  return (at) => new Date(at).toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit", ...(span < 600_000 ? { second: "2-digit" } as const : {}) });
}

/** Date and time in the user's time zone, with the zone. */
export function moment(time: string | number | undefined): string {
  const date = new Date(time ?? NaN);
  return Number.isNaN(date.getTime()) ? "" : `${date.toLocaleDateString("en-CA")} ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" })}`;
}

/** `1 pod`, `2 pods`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** A name of a program as words. */
export function spaced(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();
}

// A plot of series over time.
import { html, nothing, svg, type TemplateResult } from "lit";
import type { Series } from "../logic/decisions.ts";
import { figure } from "../logic/format.ts";
import { scale, ticks } from "../logic/scale.ts";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [900, 130, 56, 12, 10, 22];

/** The plot; `time` formats a time of its axis. `stepped`: a value is valid until the next one. `more`: where screen readers find all figures. */
export function timeline(title: string, all: Series[], stepped: boolean, more: string, time: (at: number) => string): TemplateResult | typeof nothing {
  const points = all.flatMap((each) => each.points);
  if (points.length < 2) return nothing;
  const ats = points.map((each) => each.at);
  const [first, last] = [Math.min(...ats), Math.max(...ats)];
  const x = spanOf([first, last]);
  const y = scale([0, ...points.map((each) => each.value)], HEIGHT - BOTTOM, TOP);
  const place = (each: { at: number; value: number }): string => `${x(each.at).toFixed(1)},${y.place(each.value).toFixed(1)}`;
  const line = (one: Series): string => one.points.map((each, index) => (stepped && index ? `${x(each.at).toFixed(1)},${y.place(one.points[index - 1]!.value).toFixed(1)} ` : "") + place(each)).join(" ");
  return html`<figure class="plot">
    <figcaption>${title} ${all.map((each, index) => html`<span class="key k${index}">${each.name}</span>`)}</figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${`${title}: ${all.map((each) => `${each.name} is ${figure(each.points.at(-1)?.value)}`).join(", ")}. ${more}`}>
      ${ticks(y.least, y.most).map((value) => svg`<g class="tick"><line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y.place(value)} y2=${y.place(value)} /><text x=${LEFT - 8} y=${y.place(value) + 4} text-anchor="end">${figure(value)}</text></g>`)}
      ${["start", "middle", "end"].map((anchor, index) => svg`<text x=${x(first + (index / 2) * (last - first))} y=${HEIGHT - 4} text-anchor=${anchor}>${time(first + (index / 2) * (last - first))}</text>`)}
      ${all.map((each, index) => svg`<polyline class=${`series k${index}`} points=${line(each)} />`)}
    </svg>
  </figure>`;
}

function spanOf(times: number[]): (at: number) => number {
  const [least, most] = [Math.min(...times), Math.max(...times)];
  return (at) => LEFT + ((at - least) / (most - least || 1)) * (WIDTH - LEFT - RIGHT);
}

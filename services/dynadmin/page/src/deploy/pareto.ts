// The Pareto front: tokens per second per user against tokens per second per GPU. Points can have the focus; a table has the same data.
import { html, nothing, svg, type SVGTemplateResult, type TemplateResult } from "lit";
import type { Any } from "../api/client.ts";
import { figure } from "../logic/format.ts";
import { frontOf } from "../logic/points.ts";
import { scale, ticks } from "../logic/scale.ts";
import { Part, properties } from "../parts/part.ts";

export interface Point {
  /** Its number, from 1. */
  number: number;
  title: string;
  figures: Any;
  selected: boolean;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [560, 260, 62, 16, 12, 40];

class Pareto extends Part {
  static override properties = properties("points", "chosen", "act");
  points: Point[] = [];
  chosen = 0;
  /** Label of the action on the chosen point; without a label there is no action. */
  act = "";

  override render(): TemplateResult {
    const drawn = this.points.filter((each) => each.figures.tokensPerSecondPerUser && each.figures.tokensPerSecondPerGPU);
    const chosen = this.points.find((each) => each.number === this.chosen);
    return html`${drawn.length > 1 ? this.plot(drawn) : nothing} ${this.table()}
      ${chosen && this.act
        ? html`<div class="actions">
            <span class="muted">Point ${chosen.number}: ${chosen.title}</span>
            <button type="button" class="button accent" @click=${() => this.dispatchEvent(new CustomEvent("act", { detail: chosen }))}>${this.act}</button>
          </div>`
        : nothing}`;
  }

  private plot(points: Point[]): TemplateResult {
    const x = scale(points.map((each) => each.figures.tokensPerSecondPerUser), LEFT, WIDTH - RIGHT);
    const y = scale(points.map((each) => each.figures.tokensPerSecondPerGPU), HEIGHT - BOTTOM, TOP);
    const at = (each: Point): [number, number] => [x.place(each.figures.tokensPerSecondPerUser), y.place(each.figures.tokensPerSecondPerGPU)];
    const line = frontOf(points).map((each) => at(each).join(",")).join(" ");
    return html`<figure class="plot">
      <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="group" aria-label="Pareto front: tokens per second per user, against tokens per second per GPU">
        ${ticks(y.least, y.most).map((value) => svg`<g class="tick"><line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y.place(value)} y2=${y.place(value)} /><text x=${LEFT - 8} y=${y.place(value) + 4} text-anchor="end">${figure(value)}</text></g>`)}
        ${ticks(x.least, x.most).map((value) => svg`<text class="tick" x=${x.place(value)} y=${HEIGHT - BOTTOM + 18} text-anchor="middle">${figure(value)}</text>`)}
        <text class="axis" x=${(WIDTH + LEFT) / 2} y=${HEIGHT - 4} text-anchor="middle">tokens/s/user</text>
        <text class="axis" transform="translate(12 ${(HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">tokens/s/GPU</text>
        <polyline class="front" points=${line} />
        ${points.map((each) => this.point(each, at(each)))}
      </svg>
    </figure>`;
  }

  private point(each: Point, [x, y]: [number, number]): SVGTemplateResult {
    const { figures } = each;
    const words = `Point ${each.number}: ${each.title}, TTFT ${figure(figures.ttft, "ms")}, ITL ${figure(figures.itl, "ms")}, ${figure(figures.gpus)} GPUs`;
    const key = (event: KeyboardEvent): void => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(each);
    };
    const shape = each.number === this.chosen ? "point chosen" : each.selected ? "point best" : "point";
    return svg`<g class=${shape} role="button" tabindex="0" aria-label=${words} aria-pressed=${each.number === this.chosen} @click=${() => this.choose(each)} @keydown=${key}>
      <title>${words}</title><circle class="halo" cx=${x} cy=${y} r="12" /><circle cx=${x} cy=${y} r="6" />
    </g>`;
  }

  private table(): TemplateResult {
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of points"><table class="rows tight points">
      <caption class="hidden">Points of the Pareto front</caption>
      <thead><tr><th scope="col">Point</th><th scope="col">Deployment</th><th scope="col" class="number">TTFT, ms</th><th scope="col" class="number">ITL, ms</th><th scope="col" class="number">GPUs</th><th scope="col" class="number">tok/s/user</th><th scope="col" class="number">tok/s/GPU</th></tr></thead>
      <tbody>
        ${this.points.map(
          (each) => html`<tr class=${each.number === this.chosen ? "chosen" : ""}>
            <th scope="row" class="short"><label class="check"><input type="radio" name="point" .checked=${each.number === this.chosen} @change=${() => this.choose(each)} /> ${each.number}</label></th>
            <td data-title="Deployment">${each.title}${each.selected ? html` <span class="badge good">selected</span>` : nothing}${each.figures.meetsSLA === false ? html` <span class="badge busy">misses the objective</span>` : nothing}</td>
            <td data-title="TTFT, ms" class="number">${figure(each.figures.ttft)}</td>
            <td data-title="ITL, ms" class="number">${figure(each.figures.itl)}</td>
            <td data-title="GPUs" class="number">${figure(each.figures.gpus)}</td>
            <td data-title="tok/s/user" class="number">${figure(each.figures.tokensPerSecondPerUser)}</td>
            <td data-title="tok/s/GPU" class="number">${figure(each.figures.tokensPerSecondPerGPU)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>`;
  }

  private choose(each: Point): void {
    this.chosen = each.number;
    this.dispatchEvent(new CustomEvent("choose", { detail: each }));
  }
}

customElements.define("dyn-pareto", Pareto);

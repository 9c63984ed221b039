// Axes of plots. Pure.

export interface Scale {
  least: number;
  most: number;
  place: (value: number) => number;
}

/** A linear axis from 0, or from slightly below the minimum if all values are close. */
export function scale(values: number[], from: number, to: number): Scale {
  const highest = Math.max(...values, 0) || 1;
  const lowest = Math.min(...values);
  const least = lowest > 0.5 * highest ? Math.max(0, lowest - (highest - lowest || highest) * 0.5) : 0;
  const most = highest + (highest - least) * 0.06;
  return { least, most, place: (value) => from + ((value - least) / (most - least)) * (to - from) };
}

/** Round values within an axis, about four of them. */
export function ticks(least: number, most: number): number[] {
  const rough = (most - least) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const values: number[] = [];
  for (let value = Math.ceil(least / step) * step; value <= most; value += step) values.push(Number(value.toPrecision(6)));
  return values;
}

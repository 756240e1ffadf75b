/** Numbers in words, and access to the elements of the page. */

export const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** Speaks an invisible text through a screen reader, when the reader is silent. */
export function announce(text: string): void {
  element("announcer").textContent = text;
}

/** Approximate bytes, in a suitable unit. */
export function bytes(count: number): string {
  const units: [number, string][] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [size, unit] = units.find(([size]) => count >= size) ?? [1, "B"];
  return `${(count / size).toLocaleString("en", { maximumSignificantDigits: 3 })} ${unit}`;
}

/** An exact count. */
export function exact(count: number): string {
  return count.toLocaleString("en");
}

export function milliseconds(time: number): string {
  return time < 1000 ? `${time.toFixed(time < 10 ? 1 : 0)} ms` : `${(time / 1000).toFixed(1)} s`;
}

/** A predicted time in words, rounded because it is uncertain. */
export function about(seconds: number): string {
  if (seconds < 1) return "less than a second";
  if (seconds < 100) return `about ${Math.ceil(seconds)} s`;
  return `about ${Math.ceil(seconds / 60)} min`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** A line of a table: its heading, then its cells. */
export function row(what: string, ...cells: string[]): HTMLTableRowElement {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = what;
  line.append(head);
  for (const text of cells) line.insertCell().textContent = text;
  return line;
}

// What pages are made of: tables, pagers, small charts, times, badges, JSON. Each returns an element.

import { h, replace, svg } from "./dom.js";
import { clock, count, relative } from "./format.js";
import { fault, pretty } from "./jsontext.js";

const PAUSE_MS = 250; // of typing

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => import("./dom.js").Child | import("./dom.js").Child[]} cell
 * @property {(row: any) => unknown} [value] what the cell depends on: it is drawn again only when that changes
 * @property {boolean} [number] aligned to the right, figures below each other
 * @property {boolean} [heading] names the row
 */

/**
 * A table whose rows can be replaced; what has not changed stays the same element, so that focus and selection stay.
 * @param {{caption: string, columns: Column[], key: (row: any) => unknown, empty: string}} options
 *   empty: what it says without rows
 */
export function table({ caption, columns, key, empty }) {
  const body = h("tbody");
  const heads = columns.map((one) => h("th", { scope: "col", class: one.number && "number" }, one.title));
  const nothing = h("p", { class: "empty" }, empty);
  const whole = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body);
  const element = h("div", { class: "table" }, whole, nothing);
  let drawn = new Map();

  function line(row) {
    const old = drawn.get(key(row));
    const cells = columns.map((column, index) => {
      const value = JSON.stringify(column.value ? column.value(row) : row);
      if (old && old.values[index] === value) return [old.cells[index], value];
      const attributes = { class: column.number && "number", "data-title": column.title };
      const tag = column.heading ? "th" : "td";
      return [h(tag, column.heading ? { ...attributes, scope: "row" } : attributes, column.cell(row)), value];
    });
    const made = { tr: old?.tr ?? h("tr"), cells: cells.map(([cell]) => cell), values: cells.map(([, value]) => value) };
    made.cells.forEach((cell, index) => put(made.tr, index, cell));
    return made;
  }

  /** @param {any[]} rows */
  function update(rows) {
    const next = new Map(rows.map((row) => [key(row), line(row)]));
    for (const [one, { tr }] of drawn) if (!next.has(one)) tr.remove();
    [...next.values()].forEach(({ tr }, index) => {
      if (body.children[index] !== tr) body.insertBefore(tr, body.children[index] ?? null);
    });
    drawn = next;
    nothing.hidden = rows.length > 0;
    whole.hidden = rows.length === 0;
  }

  update([]);
  return { element, update };
}

/** Make a cell the one at a place in its row; where the focus was in the one before, it goes to the new one's button. */
function put(tr, index, cell) {
  const old = tr.children[index];
  if (old === cell) return;
  if (!old) {
    tr.append(cell);
    return;
  }
  const focused = old.contains(document.activeElement);
  old.replaceWith(cell);
  if (focused) cell.querySelector("button, a")?.focus();
}

/**
 * The way on through a list that is given page by page; the way back is the browser's, and the first page.
 * @param {{first: string | null, next: string | null, told?: string}} options addresses within the dashboard, or null
 */
export function pager({ first, next, told }) {
  return h("nav", { class: "pager", "aria-label": "Pages" },
    first && h("a", { href: first }, "First page"),
    next && h("a", { href: next, rel: "next" }, "Next page"),
    told && h("span", { class: "quiet" }, told));
}

/**
 * A line of numbers, the last one on the right, as a picture that says in words what it shows.
 * @param {number[]} numbers @param {string} label
 */
export function sparkline(numbers, label) {
  const [width, height] = [120, 24];
  const high = Math.max(...numbers, 1);
  const step = width / Math.max(numbers.length - 1, 1);
  const points = numbers.map((n, index) => `${(index * step).toFixed(1)},${(height - 1 - (n / high) * (height - 3)).toFixed(1)}`);
  return svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    svg("polyline", { points: points.join(" ") }));
}

/** A time, local and relative; what is relative is kept right by `refreshTimes`. @param {number | null} at unix ms */
export function time(at) {
  if (at === null || at === undefined) return h("span", { class: "quiet" }, "–");
  const now = Date.now();
  const iso = new Date(at).toISOString();
  return h("time", { datetime: iso, title: iso }, clock(at, now), " ",
    h("span", { class: "quiet", "data-at": at }, `(${relative(at, now)})`));
}

/** Set anew what is said of times below an element. @param {Element} element */
export function refreshTimes(element) {
  const now = Date.now();
  for (const one of element.querySelectorAll("[data-at]")) {
    const said = `(${relative(Number(one.dataset.at), now)})`;
    if (one.textContent !== said) one.textContent = said;
  }
}

const MARKS = { ready: "●", leased: "▶", backoff: "↻", scheduled: "◷", waiting: "⋯", finished: "✓", none: "○", paused: "‖" };

/** A state by sign, word and colour. @param {string} state @param {string} [said] */
export function badge(state, said = state) {
  const mark = MARKS[state] ?? "·";
  return h("span", { class: `badge ${MARKS[state] ? state : ""}` }, h("span", { "aria-hidden": "true" }, mark), " ", said);
}

/**
 * Facts by name. @param {[string, import("./dom.js").Child | import("./dom.js").Child[]][]} pairs
 */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));
}

/**
 * Numbers as tiles, whose texts are set anew without their links becoming others, so that focus stays.
 * @param {{name: string, state?: string, href?: string}[]} list
 */
export function tiles(list) {
  const shown = list.map(({ href }) => h(href ? "a" : "span", { href }));
  const element = h("dl", { class: "tiles" }, list.map(({ name, state }, index) =>
    h("div", {}, h("dt", {}, state ? badge(state, name) : name), h("dd", {}, shown[index]))));
  /** @param {Record<string, string>} texts by the tile's name */
  const update = (texts) => shown.forEach((one, index) => {
    const text = texts[list[index].name];
    if (one.textContent !== text) one.textContent = text;
  });
  return { element, update };
}

/**
 * A label and what it is for.
 * @param {string} label @param {Element} control @param {string} [hint]
 */
export function field(label, control, hint) {
  control.id ||= `field-${label.toLowerCase().replace(/\W+/g, "-")}`;
  const hinted = hint && h("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (hinted) control.setAttribute("aria-describedby", hinted.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), hinted, control);
}

/**
 * Heed what is typed once that pauses, unless the page was left meanwhile.
 * @param {HTMLInputElement} input @param {AbortSignal} signal of the page @param {() => void} heed
 */
export function onPause(input, signal, heed) {
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(heed, PAUSE_MS);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));
}

/** A choice. @param {string} name @param {[string, string][]} options value and word @param {string} chosen */
export function choice(name, options, chosen) {
  return h("select", { name }, options.map(([value, word]) =>
    h("option", { value, selected: value === chosen }, word)));
}

/** A button. @param {string} label @param {(event: Event) => unknown} press @param {Record<string, unknown>} [more] */
export const button = (label, press, more = {}) => h("button", { type: "button", ...more, on: { click: press } }, label);

/**
 * A button that copies a text. @param {string} label @param {() => string} text @param {(said: string) => void} say
 */
export function copyButton(label, text, say) {
  return button(label, async () => {
    try {
      await navigator.clipboard.writeText(text());
      say("Copied.");
    } catch {
      say("This browser does not let the page copy here: mark the text and copy it by hand.");
    }
  });
}

/** JSON to read, a part a line or as it came. @param {string} label @param {string} raw @param {(said: string) => void} say */
export function jsonView(label, raw, say) {
  const text = h("pre", { tabindex: "0", role: "region", "aria-label": label }, "");
  const asItCame = button("As it came", () => show(text.dataset.form !== "raw"), { "aria-pressed": "false" });
  function show(rawNow) {
    text.dataset.form = rawNow ? "raw" : "pretty";
    asItCame.setAttribute("aria-pressed", String(rawNow));
    replace(text, rawNow || fault(raw) ? raw : pretty(raw));
  }
  show(false);
  return h("div", { class: "json" }, h("div", { class: "buttons" }, asItCame, copyButton("Copy JSON", () => raw, say)), text);
}

/** How many of something wait, as a cell: nothing is quiet. @param {number} n */
export const amount = (n) => (n ? count(n) : h("span", { class: "quiet" }, "0"));

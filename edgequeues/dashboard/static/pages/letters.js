// The dead letters of a queue: found by a filter, looked at, replayed and deleted, one or many.

import { path } from "../api.js";
import { trouble } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { counted, short } from "../format.js";
import { elements, member } from "../jsontext.js";
import { crumbs, queueAt, queueNav } from "../places.js";
import { button, choice, field, pager, table, time } from "../widgets.js";
import { lettersAt, purgeLetters, replayLetters } from "./letters-many.js";

const SHOWN = 50; // letters a page
const TEXTS = ["reason", "key", "type", "error", "where", "replayed"];
const MORE = ["key", "type", "since", "until", "replayed"]; // of the filter, out of sight until one is used
const REASONS = ["exhausted", "permanent", "skipped", "malformed"];

/** The page. The filter is in the address; what is done with many is done with the letters it names. */
export async function letters(context) {
  const { api, params: { space, queue }, query, again, go, say } = context;
  const filter = read(query);
  const list = chooser(context);
  const nodes = [queueNav(space, queue, "dead-letters"), filterForm(filter, (next) => go(queueAt(space, queue, "dead-letters", next)))];
  let answer;
  try {
    answer = await api.text(lettersAt(queue), { tenant_id: space, limit: SHOWN, after: query.get("after"), ...filter });
  } catch (error) {
    if (error.code !== "invalid_request") throw error;
    return { title: `Dead letters of ${queue}`, crumbs: crumbs(space, queue), nodes: [...nodes, trouble(error)] };
  }
  const next = JSON.parse(answer).next ?? null;
  const found = elements(member(answer, "dead_letters") ?? "[]").map((one) => ({ ...JSON.parse(one), raw: member(one, "preview") ?? "" }));
  list.show(found);

  const filtered = Object.keys(filter).length > 0;
  const many = { api, queue, space, say, again, signal: context.signal };
  const { replayed, ...replayable } = filter; // what was replayed is never replayed again, so a replay does not ask
  const all = (rest) => (Object.keys(rest).length ? bodyOf(rest) : { all: true });
  const which = filtered ? "all that match" : "all";
  const chosen = h("span", { class: "quiet", role: "status" });
  const some = [
    button("Replay chosen …", () => replayLetters(many, { ids: list.chosen() }), { disabled: true }),
    button("Delete chosen …", () => purgeLetters(many, { ids: list.chosen() }), { disabled: true, class: "danger" }),
  ];
  list.onChange((count) => {
    for (const one of some) one.disabled = count === 0;
    replace(chosen, count ? `${counted(count, "letter")} chosen` : "");
  });
  const actions = h("div", { class: "buttons", role: "group", "aria-label": "What to do with dead letters" },
    some, button(`Replay ${which} …`, () => replayLetters(many, all(replayable)), { disabled: !found.length || replayed === "true" }),
    button(`Delete ${which} …`, () => purgeLetters(many, all(filter)), { class: "danger", disabled: !found.length }), chosen);
  const at = (after) => queueAt(space, queue, "dead-letters", { ...filter, after });
  const told = next && !found.length ? "Nothing here yet; the server looked at a part of the letters. Go on to the next page." : undefined;
  const pages = pager({ first: query.get("after") && at(null), next: next === null ? null : at(next), told });
  nodes.push(actions, list.element, pages);
  return { title: `Dead letters of ${queue}`, crumbs: crumbs(space, queue), nodes };
}

/** The filter that an address holds, in the words of the API. */
function read(query) {
  const found = {};
  for (const name of [...TEXTS, "since", "until"]) {
    const value = query.get(name);
    if (value) found[name] = value;
  }
  return found;
}

/** The same filter as the body of a call about many. */
function bodyOf(filter) {
  const body = { ...filter };
  if (body.reason) body.reason = [body.reason];
  if (body.replayed) body.replayed = body.replayed === "true";
  for (const name of ["since", "until"]) if (body[name]) body[name] = Number(body[name]);
  return body;
}

function filterForm(filter, apply) {
  const text = (name, more = {}) => h("input", { name, value: filter[name] ?? "", autocomplete: "off", spellcheck: "false", ...more });
  const moment = (name) => h("input", { type: "datetime-local", step: "1", name, value: localOf(filter[name]) });
  const form = h("form", { class: "tools", "aria-label": "Which dead letters", on: { submit } },
    field("Reason", choice("reason", [["", "any"], ...REASONS.map((one) => [one, one])], filter.reason ?? "")),
    field("Error has", text("error", { type: "search" })),
    h("button", { class: "primary" }, "Find"),
    Object.keys(filter).length > 0 && button("Clear", () => apply({})),
    full(field("Expression", text("where", { class: "mono" }), 'As in a spec: reason == "exhausted" && failed_at > now - 3600')),
    h("details", { class: "more", open: MORE.some((name) => filter[name]) }, h("summary", {}, "More of the filter"),
      h("div", { class: "tools" },
        field("Key", text("key")), field("Type", text("type")), field("Failed since", moment("since")), field("Failed until", moment("until")),
        field("Replayed", choice("replayed", [["", "either"], ["false", "not replayed"], ["true", "replayed"]], filter.replayed ?? "")))));
  function submit(event) {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
    for (const name of ["since", "until"]) if (given[name]) given[name] = Math.floor(new Date(given[name]).getTime() / 1000);
    apply(given);
  }
  return form;
}

function full(element) {
  element.classList.add("full");
  return element;
}

/** Unix seconds as an input for times has them, which is local. */
function localOf(seconds) {
  if (!seconds || Number.isNaN(Number(seconds))) return "";
  const date = new Date(Number(seconds) * 1000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A table of letters of which some can be chosen. */
function chooser({ params: { space, queue }, query }) {
  const picked = new Set();
  let shown = [];
  let changed = () => {};
  const all = h("input", { type: "checkbox", "aria-label": "Choose all on this page", on: { change: () => pickAll() } });
  const list = table({
    caption: "Dead letters, the oldest of each queue first",
    key: (row) => row.id,
    empty: query.toString() ? "No dead letter is like that." : "No dead letter comes from this queue.",
    columns: [
      { title: "Chosen", cell: (row) => box(row) },
      { title: "Id", heading: true, cell: (row) => h("a", { class: "mono", href: letterAt(space, queue, row.id) }, row.id) },
      { title: "Failed", cell: (row) => time(row.failed_at * 1000) },
      { title: "Attempts", number: true, cell: (row) => row.attempts },
      { title: "Last error", cell: (row) => h("span", { class: "wrap" }, short(row.error || "–", 160)) },
      { title: "Message", cell: (row) => h("div", { class: "mono preview" }, short(row.raw, 160)) },
    ],
  });
  function box(row) {
    return h("input", { type: "checkbox", "data-id": row.id, "aria-label": `Choose ${row.id}`, on: {
      change: (event) => {
        if (event.currentTarget.checked) picked.add(row.id);
        else picked.delete(row.id);
        told();
      },
    } });
  }
  function pickAll() {
    for (const one of list.element.querySelectorAll("tbody input")) one.checked = all.checked;
    picked.clear();
    if (all.checked) for (const one of shown) picked.add(one.id);
    told();
  }
  function told() {
    all.checked = picked.size > 0 && picked.size === shown.length;
    all.indeterminate = picked.size > 0 && picked.size < shown.length;
    changed(picked.size);
  }
  const pick = h("p", { class: "pick" }, h("label", {}, all, " All on this page"));
  return {
    element: h("div", {}, pick, list.element),
    show: (rows) => {
      shown = rows;
      pick.hidden = rows.length === 0;
      list.update(rows);
    },
    chosen: () => shown.filter((one) => picked.has(one.id)).map((one) => one.id),
    onChange: (listener) => (changed = listener),
  };
}

/** Of a dead letter. @param {string} space @param {string} queue @param {string} id */
export const letterAt = (space, queue, id) => queueAt(space, queue, "dead-letters") + path`/${id}`;

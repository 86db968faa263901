// The messages of a queue, or the entries of a log, in any state: searched, and listed page by page.

import { dxn, path } from "../api.js";
import { trouble } from "../dialogs.js";
import { h } from "../dom.js";
import { short } from "../format.js";
import { withRaw } from "../jsontext.js";
import { crumbs, messageAt, queueAt, queueNav } from "../places.js";
import { badge, choice, field, pager, table, time } from "../widgets.js";

const SHOWN = 50; // entries a page
const ASKED = ["state", "consumer", "id", "key", "type", "where", "reverse", "after"];
const STATES = ["ready", "leased", "backoff", "scheduled", "waiting", "finished", "none"];

/** The page. What is asked for stands in its address; a log begins with its newest entry. */
export async function messages(context) {
  const { params, query, api, go } = context;
  const address = dxn(params.space, params.queue);
  const [{ kind }, { consumers }] = await Promise.all([
    api.get(path`/v1/${address}/config`), api.get(path`/v1/${address}/consumers`),
  ]);
  const asked = Object.fromEntries(ASKED.map((name) => [name, query.get(name)]).filter(([, value]) => value));
  asked.reverse ??= kind === "log" ? "true" : "false";
  const title = kind === "log" ? `Entries of ${params.queue}` : `Messages of ${params.queue}`;
  const top = [
    queueNav(params.space, params.queue, "messages"),
    form(asked, kind, consumers, (given) => go(queueAt(params.space, params.queue, "messages", given))),
  ];
  let answer;
  try {
    answer = await api.text(path`/v1/${address}/search`, { ...asked, limit: SHOWN });
  } catch (error) {
    if (error.status !== 400) throw error;
    // What was asked for will not do: it stays in the form, to be mended.
    return { title, crumbs: crumbs(params.space, params.queue), nodes: [top, trouble(error)].flat() };
  }
  const found = withRaw(answer, "found");
  const { resume } = JSON.parse(answer);

  const list = table(columns(params, consumers.length > 1));
  list.update(found);
  const at = (changes) => queueAt(params.space, params.queue, "messages", { ...asked, ...changes });
  const told = resume !== null && found.length < SHOWN
    ? "The search stopped where it had looked at enough for one call: there may be more on the next page." : "";
  const nodes = [
    ...top,
    list.element,
    pager({ first: asked.after ? at({ after: null }) : null, next: resume === null ? null : at({ after: resume }), told }),
  ];
  return { title, crumbs: crumbs(params.space, params.queue), nodes };
}

function form(asked, kind, consumers, search) {
  const text = (name, more = {}) => h("input", { type: "text", name, value: asked[name] ?? "", autocomplete: "off", spellcheck: "false", ...more });
  const controls = [
    field("State", choice("state", [["", "any"], ...STATES.map((one) => [one, one])], asked.state ?? "")),
    consumers.length > 1 && field("Consumer", choice("consumer", [["", "all"], ...consumers.map(({ name }) => [name, name])], asked.consumer ?? "")),
    field("Id", text("id", { maxlength: 128 })),
    field("Key", text("key", { maxlength: 256 })),
    field("Type", text("type", { maxlength: 512 })),
    field("Order", choice("reverse", [["false", "oldest first"], ["true", "newest first"]], asked.reverse)),
  ];
  const where = field("Where", text("where", { type: "search", maxlength: 4096, placeholder: 'total > 100 && attempts >= 2' }),
    "An expression over the fields of the data, and id, key, type, priority, state, attempts, worker, error, created_at, due_at …");
  where.classList.add("wide");
  function send(event) {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(event.currentTarget)].map(([name, value]) => [name, value.trim()]));
    search(given);
  }
  return h("form", { role: "search", "aria-label": kind === "log" ? "Entries" : "Messages", on: { submit: send } },
    h("div", { class: "tools" }, controls),
    h("div", { class: "tools" }, where, h("button", { class: "primary" }, "Search")));
}

function columns(params, several) {
  return {
    caption: "Found",
    key: (row) => row.position,
    empty: "Nothing here is so. What was acked is gone where the queue deletes it; dead letters are in the queue in which they lie.",
    columns: [
      { title: "Id", heading: true, cell: (row) => h("a", { class: "mono", href: messageAt(params.space, params.queue, row.id) }, row.id) },
      { title: "State", cell: (row) => states(row.standings, several) },
      { title: "Attempts", number: true, cell: (row) => Math.max(0, ...row.standings.map((one) => one.attempts ?? 0)) },
      { title: "Appended", cell: (row) => time(row.updated) },
      { title: "Key", cell: (row) => row.key ?? "–" },
      { title: "Type", cell: (row) => row.type ?? "–" },
      { title: "Data", cell: (row) => h("code", { class: "preview" }, short(row.raw)) },
    ],
  };
}

function states(standings, several) {
  if (!standings.length) return badge("none");
  return standings.map((one) => h("div", { class: "line" }, badge(one.state), several && ` ${one.consumer}`));
}

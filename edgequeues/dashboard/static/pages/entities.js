// What the commands of a space made: by type, and one by one with the commands that did it.

import { path } from "../api.js";
import { h } from "../dom.js";
import { short } from "../format.js";
import { elements, member } from "../jsontext.js";
import { crumbs, messageAt, spaceAt, spaceNav } from "../places.js";
import { facts, field, jsonView, pager, table, time } from "../widgets.js";

const SHOWN = 50; // entities a page
const COMMANDS = 50; // commands a page of a history

const at = (space, type, id, asked) =>
  spaceAt(space, ["entities", type, id].filter((one) => one !== undefined).map((one, n) => (n ? encodeURIComponent(one) : one)).join("/"), asked);

/** Where a type is asked for, and, once one was, the entities of it. There is no list of types. */
export async function entities({ params, query, api, go }) {
  const named = h("input", { type: "search", name: "type", value: params.type ?? "", maxlength: 256, required: true, autocomplete: "off" });
  const send = (event) => {
    event.preventDefault();
    go(at(params.space, named.value.trim()));
  };
  const form = h("form", { class: "tools", role: "search", "aria-label": "Entities", on: { submit: send } },
    field("Type", named, "As the commands of a spec name it: Incident in Incident.Open."), h("button", { class: "primary" }, "Show"));
  const found = params.type === undefined ? [] : await page(params, query, api);
  return { title: `Entities of ${params.space}`, crumbs: crumbs(params.space), nodes: [spaceNav(params.space, "entities"), form, ...found] };
}

async function page(params, query, api) {
  const after = query.get("after");
  const text = await api.text(path`/v1/spaces/${params.space}/entities/${params.type}`, { after, limit: SHOWN });
  const list = table({
    caption: `Entities of type ${params.type}`,
    key: (row) => row.id,
    empty: "There is no entity of this type. Types are written as the spec does, in upper and lower case.",
    columns: [
      { title: "Id", heading: true, cell: (row) => h("a", { class: "mono", href: at(params.space, params.type, row.id) }, row.id) },
      { title: "State", cell: (row) => row.state ?? "–" },
      { title: "Version", number: true, cell: (row) => row.version },
      { title: "Changed", cell: (row) => time(row.updated) },
      { title: "Attributes", cell: (row) => h("code", { class: "preview" }, short(row.raw)) },
    ],
  });
  list.update(elements(member(text, "entities") ?? "[]").map((one) => ({ ...JSON.parse(one), raw: member(one, "attributes") ?? "{}" })));
  const next = JSON.parse(text).resume;
  return [list.element, pager({ first: after && at(params.space, params.type), next: next && at(params.space, params.type, undefined, { after: next }) })];
}

/** One entity, and the commands that were carried out on it. */
export async function entity({ params, query, api, say }) {
  const { space, type, id } = params;
  const after = query.get("after");
  const [text, history] = await Promise.all([
    api.text(path`/v1/spaces/${space}/entities/${type}/${id}`),
    api.get(path`/v1/spaces/${space}/entities/${type}/${id}/history`, { after, limit: COMMANDS }),
  ]);
  const one = JSON.parse(text);
  const list = table({
    caption: "Commands, the oldest first",
    key: (row) => row.receipt,
    empty: "No receipt of a command is kept: they are kept for 90 days.",
    columns: [
      { title: "Command", heading: true, cell: (row) => row.command },
      { title: "When", cell: (row) => time(row.executed) },
      { title: "Version after it", number: true, cell: (row) => row.version },
      { title: "Called for", cell: (row) => (row.queue ? [`${row.queue}: `, h("a", { class: "mono", href: messageAt(space, row.queue, row.message) }, row.message)] : "a webhook's request") },
    ],
  });
  list.update(history.commands);
  const nodes = [
    spaceNav(space, "entities"),
    facts([["State", one.state], ["Version", one.version], ["Made", time(one.created)], ["Changed", time(one.updated)]]),
    h("h2", {}, "Attributes"), jsonView("Attributes", member(text, "attributes") ?? "{}", say),
    h("h2", {}, "History"), list.element,
    pager({ first: after && at(space, type, id), next: history.resume && at(space, type, id, { after: history.resume }) }),
  ];
  return { title: `${type} ${id}`, crumbs: [...crumbs(space), [`Entities of type ${type}`, at(space, type)]], nodes };
}

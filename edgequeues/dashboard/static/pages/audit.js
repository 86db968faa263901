// Who did what to a space, the newest first.

import { h } from "../dom.js";
import { short, words } from "../format.js";
import { crumbs, queueAt, spaceAt, spaceNav } from "../places.js";
import { field, pager, table, time } from "../widgets.js";

const SHOWN = 50; // records a page

/** The page; of all queues, or of one by its name or id. */
export async function audit({ params, query, api, go }) {
  const asked = { queue: query.get("queue"), after: query.get("after") };
  const answer = await api.get("/admin/audit", { tenant_id: params.space, limit: SHOWN, reverse: true, ...asked });
  const list = table({
    caption: "Records, the newest first",
    key: (row) => row.id,
    empty: asked.queue ? "Nothing was done to a queue of this name." : "Nothing was done here by hand. What workers do, pull and ack, is not recorded here.",
    columns: [
      { title: "When", heading: true, cell: (row) => time(row.at * 1000) },
      { title: "Who", cell: (row) => who(row.who) },
      { title: "Did", cell: (row) => words(row.action) },
      { title: "Queue", cell: (row) => (row.queue ? h("a", { href: queueAt(params.space, row.queue) }, row.queue) : "the space") },
      { title: "Detail", cell: (row) => detail(row.detail) },
    ],
  });
  list.update(answer.audit);
  const named = h("input", { type: "search", name: "queue", value: asked.queue ?? "", maxlength: 128, autocomplete: "off" });
  const send = (event) => {
    event.preventDefault();
    go(spaceAt(params.space, "audit", { queue: named.value.trim() }));
  };
  const at = (after) => spaceAt(params.space, "audit", { queue: asked.queue, after });
  const nodes = [
    spaceNav(params.space, "audit"),
    h("form", { class: "tools", role: "search", "aria-label": "Audit log", on: { submit: send } },
      field("Queue", named, "Its name or its id; nothing: all."), h("button", { class: "primary" }, "Show")),
    list.element,
    pager({ first: asked.after && at(null), next: answer.next === undefined ? null : at(answer.next) }),
  ];
  return { title: `Audit log of ${params.space}`, crumbs: crumbs(params.space), nodes };
}

const WHO = { loopback: "somebody on this machine, without a token", anybody: "somebody without a token", server: "the server, at its start" };

function who({ id, name }) {
  return name || WHO[id] || h("span", { class: "mono" }, id);
}

/** Short ones at once, long ones behind a fold. */
function detail(told) {
  const text = JSON.stringify(told);
  if (text === "{}") return "–";
  if (text.length <= 160) return h("code", { class: "preview" }, text);
  return h("details", { class: "preview" }, h("summary", {}, h("code", {}, short(text, 100))), h("pre", {}, JSON.stringify(told, null, 2)));
}

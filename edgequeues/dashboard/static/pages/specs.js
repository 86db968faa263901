// The specs that hold in a space: what they declare, and their text as JSON.

import { path } from "../api.js";
import { h } from "../dom.js";
import { crumbs, queueAt, spaceAt, spaceNav } from "../places.js";
import { jsonView, table, time } from "../widgets.js";

/** The page of all specs of a space. */
export async function specs({ params, api }) {
  const { specs: found } = await api.get(path`/v1/spaces/${params.space}/specs`);
  const list = table({
    caption: "Specs that hold",
    key: (row) => row.app,
    empty: "No spec holds in this space. One is applied with: edgequeues spec apply FILE",
    columns: [
      { title: "App", heading: true, cell: (row) => h("a", { href: spaceAt(params.space, `specs/${encodeURIComponent(row.app)}`) }, row.app) },
      { title: "Comes from", cell: (row) => h("span", { class: "wrap" }, row.origin) },
      { title: "Applied", cell: (row) => time(row.applied) },
      { title: "Queues", cell: (row) => listed(row.queues, (name) => h("a", { href: queueAt(params.space, name) }, name)) },
      { title: "Webhooks", cell: (row) => listed(row.webhooks, String) },
      { title: "Schedules", cell: (row) => listed(row.schedules, String) },
      { title: "What is wrong", cell: (row) => h("span", { class: "wrap" }, row.blocked || "nothing") },
    ],
  });
  list.update(found);
  return { title: `Specs of ${params.space}`, crumbs: crumbs(params.space), nodes: [spaceNav(params.space, "specs"), list.element] };
}

/** The page of one spec. */
export async function spec({ params, api, say }) {
  const text = await api.text(path`/v1/spaces/${params.space}/specs/${params.app}`);
  const nodes = [spaceNav(params.space, "specs"), jsonView(`Spec of ${params.app}`, text, say)];
  return { title: `Spec of ${params.app}`, crumbs: [...crumbs(params.space), ["Specs", spaceAt(params.space, "specs")]], nodes };
}

const listed = (names, shown) =>
  names.length ? names.flatMap((name, index) => (index ? [", ", shown(name)] : [shown(name)])) : "–";

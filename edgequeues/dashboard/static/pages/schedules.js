// What is made again and again in a space, and when it comes next.

import { path } from "../api.js";
import { confirmed, doing } from "../dialogs.js";
import { h } from "../dom.js";
import { crumbs, queueAt, spaceAt, spaceNav } from "../places.js";
import { amount, button, pager, table, time } from "../widgets.js";

/** The page. */
export async function schedules(context) {
  const { params, query, api } = context;
  const after = query.get("after");
  const answer = await api.get(path`/v1/spaces/${params.space}/schedules`, { after, limit: 100 });
  const list = table({
    caption: "Schedules",
    key: (row) => row.name,
    empty: "No spec of this space declares a schedule.",
    columns: [
      { title: "Schedule", heading: true, cell: (row) => row.name },
      { title: "Queue", cell: (row) => h("a", { href: queueAt(params.space, row.queue) }, row.queue) },
      { title: "Times", cell: (row) => [h("code", {}, row.cron), ` ${row.timezone}`] },
      { title: "Next", cell: (row) => time(row.next) },
      { title: "Last", cell: (row) => time(row.last) },
      { title: "Messages made", number: true, cell: (row) => amount(row.made) },
      { title: "When missed", cell: (row) => row.missed },
      { title: "What is wrong", cell: (row) => h("span", { class: "wrap" }, row.last_error ?? "nothing") },
      { title: "App", cell: (row) => row.app },
      { title: "Action", cell: (row) => running(context, row) },
    ],
  });
  list.update(answer.schedules);
  const at = (next) => spaceAt(params.space, "schedules", { after: next });
  const pages = pager({ first: after && at(null), next: answer.resume === null ? null : at(answer.resume) });
  return { title: `Schedules of ${params.space}`, crumbs: crumbs(params.space), nodes: [spaceNav(params.space, "schedules"), list.element, pages] };
}

function running({ api, say, again, params }, { name, queue }) {
  return button("Run now", async (event) => {
    const pressed = { currentTarget: event.currentTarget };
    const yes = await confirmed({
      title: `Run ${name} now?`,
      text: `Its message is put into ${queue} at once, beside those of its own times, which stay as they are.`,
      action: "Run it",
    });
    if (!yes) return;
    await doing(pressed, say, async () => {
      const made = await api.post(path`/v1/spaces/${params.space}/schedules/${name}/run`, {});
      await again();
      return `${name} made the message ${made.id}.`;
    });
  }, { "aria-label": `Run ${name} now` });
}

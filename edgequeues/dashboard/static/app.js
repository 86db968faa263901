// The queues of the spaces there are, as the API lists them.
const main = document.getElementById("main");
const title = document.createElement("h1");
title.textContent = "edgequeues";
main.append(title);

const answer = await fetch("/v1/spaces");
const { spaces = [] } = answer.ok ? await answer.json() : {};
const list = document.createElement("ul");
for (const space of spaces) {
  const row = document.createElement("li");
  row.textContent = space.name ?? space;
  list.append(row);
}
main.append(list);

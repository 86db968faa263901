// A form that puts a message into a queue. The data goes as it was typed: no number is read and written anew.

import { path } from "../api.js";
import { doing } from "../dialogs.js";
import { h } from "../dom.js";
import { fault } from "../jsontext.js";
import { field } from "../widgets.js";

/**
 * The form, folded.
 * @param {{api: any, say: (text: string, failed?: boolean) => void}} context @param {string} address the queue's DXN
 * @param {"log" | "work"} kind
 */
export function pushing({ api, say }, address, kind) {
  const verb = kind === "work" ? "Push a message" : "Append an entry";
  const data = h("textarea", { name: "data", spellcheck: "false", required: true });
  const wrong = h("p", { id: "push-fault", class: "trouble", role: "alert", hidden: true });
  const id = h("input", { name: "id", maxlength: 128, autocomplete: "off" });
  const key = h("input", { name: "key", maxlength: 256, autocomplete: "off" });
  const type = h("input", { name: "type", maxlength: 512, autocomplete: "off" });
  const priority = h("input", { name: "priority", type: "number", min: 0, max: 9, step: 1, placeholder: "4" });
  const delay = h("input", { name: "delay", type: "number", min: 0, max: 31_536_000, step: 1, placeholder: "0" });
  const submit = h("button", { class: "primary" }, verb);

  function checked() {
    const found = fault(data.value);
    data.setAttribute("aria-invalid", String(found !== null));
    wrong.hidden = found === null;
    wrong.textContent = found ?? "";
    return found === null;
  }
  function body() {
    const beside = { id: id.value.trim(), key: key.value.trim(), type: type.value.trim() };
    const given = Object.fromEntries(Object.entries(beside).filter(([, text]) => text));
    if (priority.value) given.priority = Number(priority.value);
    if (delay.value) given.delay_ms = Number(delay.value) * 1000;
    const rest = JSON.stringify(given).slice(1, -1);
    return `{"entries":[{"data":${data.value.trim()}${rest && `,${rest}`}}]}`;
  }
  function send(event) {
    event.preventDefault();
    if (!checked()) {
      data.focus();
      return;
    }
    doing({ currentTarget: submit }, say, async () => {
      const target = kind === "work" ? path`/v1/${address}/push` : path`/v1/${address}`;
      const { results: [one] } = await api.post(target, body());
      const said = { new: "is stored", same: "was there already, with the same data", moved: "was there; it has the new data now", stale: "was there, in a later version: nothing was changed" };
      return `${one.id} ${said[one.outcome] ?? one.outcome}.`;
    });
  }
  data.addEventListener("input", () => wrong.hidden || checked());
  return h("details", {}, h("summary", {}, verb),
    h("form", { class: "stack", on: { submit: send } },
      field("Data", data, "JSON. It is stored as it is written here."), wrong,
      h("div", { class: "tools" },
        field("Id", id, "Without one, the server makes one."), field("Key", key), field("Type", type),
        field("Priority", priority), field("Delay in seconds", delay)),
      h("div", { class: "buttons" }, submit)));
}

// Questions before something is lost, and what a failed call tells.

import { h } from "./dom.js";
import { button } from "./widgets.js";

/**
 * Ask whether something shall be done. Escape and "Cancel" say no, and the focus goes back to where it was.
 * @param {{title: string, text: import("./dom.js").Child[] | string, action: string, danger?: boolean}} options
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, action, danger = false }) {
  return new Promise((resolve) => {
    const yes = button(action, () => dialog.close("yes"), { class: danger ? "danger" : "primary" });
    const no = button("Cancel", () => dialog.close("no"), { autofocus: true });
    const heading = h("h2", { id: "dialog-title" }, title);
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, heading, h("p", {}, text), h("div", { class: "buttons" }, no, yes));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * What is shown instead of a page, or above one, when a call failed.
 * @param {Error} error @param {() => void} [again]
 */
export function trouble(error, again) {
  const title = error.title ?? "This page has a fault";
  return h("div", { class: "trouble", role: "alert" },
    h("p", {}, h("strong", {}, title)),
    h("p", {}, error.message),
    error.code && h("p", { class: "quiet" }, `Status ${error.status}, code ${error.code}.`),
    again && h("div", { class: "buttons" }, button("Try again", again)));
}

/**
 * Do what a button is for: once at a time, and tell how it went.
 * @param {Event} event of the button @param {(said: string) => void} say @param {() => Promise<string>} work tells what was done
 */
export async function doing(event, say, work) {
  const pressed = event.currentTarget;
  if (pressed.ariaDisabled === "true") return;
  pressed.ariaDisabled = "true"; // a button that is really disabled would lose the focus
  try {
    say(await work());
  } catch (error) {
    if (error.name !== "AbortError") say(`Not done. ${error.message}`, true);
  } finally {
    pressed.ariaDisabled = null;
  }
}

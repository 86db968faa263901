// Elements are built here and nowhere else. Data only ever becomes text or an attribute that cannot run, so nothing
// that is in a message can become markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/**
 * Build an HTML element.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes] `on`: listeners by event; true: present without a value; null, false: left out
 * @param {...(Child | Child[])} children texts become text nodes; null and false are left out
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Put other children into an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      set(element, name, value === true ? "" : String(value));
    }
  }
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  // Listeners are functions, never text; and an address made of data must not be able to run.
  if (/^on|^style$|^srcdoc$/i.test(name)) throw new Error(`${name} is not set as an attribute`);
  if (/^(href|src|action)$/i.test(name) && !/^(#|\/(?!\/))/.test(value)) {
    throw new Error(`an address within this server is needed, not ${value.slice(0, 40)}`);
  }
  element.setAttribute(name, value);
}

function nodes(children) {
  return children
    .flat()
    .filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (one instanceof Node ? one : document.createTextNode(String(one))));
}

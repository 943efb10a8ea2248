// Elements from plain values. Text is set as text: nothing here, or anywhere in the board, parses HTML.
import { plain } from "./text.js";

/** An element: `h("p", { class: "why" }, "text", child)`; a property that is false, null or undefined is left out. */
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : plain(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(plain(child)))));
  return element;
}

const SIGNATURE = Symbol("signature");

/**
 * Makes the children of `parent` those of `items`, `{key, sign, make}` each: a child whose key and signature stand is
 * kept, so that focus, scrolling and open details outlive an update.
 */
export function sync(parent, items) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = document.activeElement;
  let at = parent.firstElementChild;
  for (const { key, sign, make } of items) {
    const signature = JSON.stringify(sign ?? null);
    let child = there.get(key);
    there.delete(key);
    if (!child || child[SIGNATURE] !== signature) {
      const made = make();
      made.dataset.key = key;
      made[SIGNATURE] = signature;
      if (child) {
        const again = child.contains(focused) ? focused.getAttribute("data-focus") ?? focused.getAttribute("href") : null;
        if (child === at) at = child.nextElementSibling;
        child.replaceWith(made);
        if (again) refocus(made, again);
      }
      child = made;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  for (const child of there.values()) child.remove();
}

function refocus(made, again) {
  const found = [made, ...made.querySelectorAll("[data-focus], a[href]")];
  const same = (element) => element.getAttribute("data-focus") === again || element.getAttribute("href") === again;
  found.find(same)?.focus();
}

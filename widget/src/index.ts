/**
 * The script's entry: defines <pagewire-chat>, and adds one to the corner of the page if the script tag names a site.
 *
 *   <script src="https://chat.example.org/widget.js" data-site="town" data-lang="en" defer></script>
 *
 * As a classic script or as a module; every data-* becomes the attribute of that name.
 */

import { PagewireChat } from "./chat";
import { complain, wanted } from "./setup";

const TAG = "pagewire-chat";
const FILE = "/widget.js";

const DATA = "data-";
// A module does not know its own tag.
const own = document.currentScript;
const ours =
  own instanceof HTMLScriptElement
    ? [own]
    : [...document.querySelectorAll<HTMLScriptElement>("script[src]")].filter(({ src }) => new URL(src).pathname.endsWith(FILE));

function embed(script: HTMLScriptElement): void {
  const chat = document.createElement(TAG) as PagewireChat;
  chat.tag = script;
  for (const { name, value } of script.attributes) {
    if (name.startsWith(DATA)) chat.setAttribute(name.slice(DATA.length), value);
  }
  document.body.append(chat);
}

function begin(): void {
  for (const script of ours) if (script.dataset.site || (wanted(script) && !document.querySelector(TAG))) embed(script);
  window.addEventListener("load", check, { once: true });
}

function check(): void {
  if (document.querySelector(TAG)) return;
  complain('the script tag has no data-site, and the page no <pagewire-chat>; write the site\'s id in pagewire.yaml, such as data-site="town"');
}

if (ours[0]) PagewireChat.home = ours[0].src;
if (!customElements.get(TAG)) customElements.define(TAG, PagewireChat);
if (document.body) begin();
else document.addEventListener("DOMContentLoaded", begin, { once: true });

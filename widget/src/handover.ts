/** A message to a person: a button below an answer, and the form that it opens. */

import { element, textButton } from "./dom";
import type { ChatContext } from "./context";
import { trouble } from "./trouble";

const MAX_NAME = 200; // characters; these three are the gateway's limits
const MAX_REPLY = 254;
const MAX_MESSAGE = 4_000;
// A mail address, or a telephone number, as the gateway takes them.
const REPLY = /^(?:[^\s@<>()[\]\\,;:"]{1,64}@[^\s@<>()[\]\\,;:"]{1,190}|[+(]?[0-9][0-9 ()/.-]{4,30})$/;

/**
 * `question`: what the message begins with. `conversation`: that goes along where the visitor says so; null: there is none.
 * `open`: a person was asked for, so the form is there at once.
 */
export function handover(context: ChatContext, question: string, conversation: string | null, open: boolean): HTMLElement {
  const { say } = context;
  const box = element("section", { className: "handover" });
  const button = textButton(say("person"), () => {
    const made = form(context, box, question, conversation);
    box.replaceChildren(made);
    made.querySelector("textarea")?.focus();
  });
  box.append(open ? form(context, box, question, conversation) : button);
  return box;
}

function form(context: ChatContext, box: HTMLElement, question: string, conversation: string | null): HTMLFormElement {
  const { say, client, lang, announce } = context;
  const message = element("textarea", { rows: 3, maxLength: MAX_MESSAGE, required: true, dir: "auto", value: question });
  const reply = element("input", { maxLength: MAX_REPLY, required: true, dir: "ltr", autocomplete: "email" });
  const name = element("input", { maxLength: MAX_NAME, dir: "auto", autocomplete: "name" });
  const along = element("input", { type: "checkbox" });
  const send = element("button", { type: "submit", textContent: say("messageSend") });
  const below = element("div");
  const made = element(
    "form",
    {},
    element("label", {}, say("message"), message),
    element("label", {}, say("replyTo"), reply),
    element("label", {}, say("yourName"), name),
    ...(conversation ? [element("label", { className: "check" }, along, say("takeAlong"))] : []),
    send,
    below,
  );
  made.ariaLabel = say("person");
  reply.addEventListener("input", () => reply.setCustomValidity(""));
  send.addEventListener("click", () => reply.setCustomValidity(REPLY.test(reply.value.trim()) ? "" : say("replyWrong")));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled) return;
    send.disabled = true; // once is enough
    try {
      const reference = await client.handOver({
        name: name.value.trim(),
        reply_to: reply.value.trim(),
        message: message.value.trim(),
        conversation_id: along.checked ? conversation : null,
        lang,
      });
      const kept = say("messageKept", { reference });
      box.replaceChildren(element("p", { textContent: kept, tabIndex: -1 }));
      box.querySelector("p")?.focus();
      announce(kept);
    } catch (error) {
      send.disabled = false;
      below.replaceChildren(trouble(context, error)); // what they wrote stays
    }
  });
  return made;
}

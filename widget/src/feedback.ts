/** Whether an answer helped: two buttons, and a comment for those who want to say more. */

import { element, iconButton } from "./dom";
import type { ChatContext } from "./context";
import { trouble } from "./trouble";
import type { Turn } from "./turn";
import type { FeedbackOrder } from "./wire";

const MAX_COMMENT = 2_000; // characters; the gateway's limit
type Rating = FeedbackOrder["rating"];

/** The group of buttons, and the place below them where the comment is asked for. */
export function feedback(context: ChatContext, turn: Turn, conversationId: string): HTMLElement[] {
  const below = element("div", { className: "comment" });
  const buttons = new Map<Rating, HTMLButtonElement>();

  const send = async (rating: Rating, comment: string | null) => {
    const at = new Date().toISOString();
    await context.client.rate(turn.requestId, conversationId, { rating, comment });
    turn.feedback = { rating, comment, at };
    context.emit("feedback", { request_id: turn.requestId, rating, comment });
    context.announce(context.say("thanks"));
  };
  const press = (rating = turn.feedback?.rating) => {
    for (const [one, button] of buttons) button.ariaPressed = String(one === rating);
  };
  const rate = async (rating: Rating) => {
    press(rating);
    const form = commentForm(context, async (comment) => {
      await send(rating, comment);
      below.replaceChildren(element("p", { textContent: context.say("thanks") }));
      buttons.get(rating)?.focus();
    });
    below.replaceChildren(form);
    form.scrollIntoView({ block: "nearest" });
    // The form asks what was wrong; after a good rating the comment stays optional and folded.
    if (rating === "down") form.querySelector("textarea")?.focus({ preventScroll: true });
    try {
      await send(rating, null);
    } catch (error) {
      press();
      below.replaceChildren(trouble(context, error));
    }
  };
  buttons.set("up", iconButton("up", context.say("helpful"), () => void rate("up")));
  buttons.set("down", iconButton("down", context.say("unhelpful"), () => void rate("down")));
  press();
  return [element("span", { className: "group" }, ...buttons.values()), below];
}

/** `send` throws errors of the gateway or the network; the visitor sees a message, and the comment stays. */
function commentForm(context: ChatContext, send: (comment: string) => Promise<void>): HTMLFormElement {
  const field = element("textarea", { rows: 2, maxLength: MAX_COMMENT, dir: "auto" });
  const label = element("label", {}, context.say("comment"), field);
  const submit = element("button", { type: "submit", textContent: context.say("commentSend") });
  const below = element("div");
  const form = element("form", {}, label, submit, below);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const comment = field.value.trim();
    if (!comment) {
      field.focus();
      return;
    }
    await send(comment).catch((error: unknown) => below.replaceChildren(trouble(context, error)));
  });
  return form;
}

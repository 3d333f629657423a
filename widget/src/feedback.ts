/** Whether an answer helped: two buttons, and a comment for those who want to say more. */

import { element, textButton } from "./dom";
import type { ChatContext } from "./context";
import type { Turn } from "./turn";
import type { FeedbackOrder } from "./wire";

const MAX_COMMENT = 2_000; // characters; the gateway's limit
type Rating = FeedbackOrder["rating"];

/** The buttons, and the place below them where the comment is asked for. */
export function feedback(context: ChatContext, turn: Turn): HTMLElement[] {
  const below = element("div", { className: "comment" });
  const buttons = new Map<Rating, HTMLButtonElement>();

  const send = async (rating: Rating, comment: string | null) => {
    const at = new Date().toISOString();
    try {
      await context.client.rate(turn.requestId, { rating, comment });
    } catch {
      return false; // nothing a visitor should be bothered with
    }
    turn.feedback = { rating, comment, at };
    context.emit("feedback", { request_id: turn.requestId, rating, comment });
    return true;
  };
  const press = () => {
    for (const [rating, button] of buttons) button.ariaPressed = String(turn.feedback?.rating === rating);
  };
  const rate = async (rating: Rating) => {
    if (!(await send(rating, null))) return;
    press();
    context.announce(context.say("thanks"));
    below.replaceChildren(commentForm(context, async (comment) => {
      if (!(await send(rating, comment))) return;
      below.replaceChildren(element("p", { textContent: context.say("thanks") }));
      context.announce(context.say("thanks"));
      buttons.get(rating)?.focus();
    }));
  };
  buttons.set("up", textButton(context.say("helpful"), () => void rate("up")));
  buttons.set("down", textButton(context.say("unhelpful"), () => void rate("down")));
  press();
  return [...buttons.values(), below];
}

function commentForm(context: ChatContext, send: (comment: string) => void): HTMLFormElement {
  const field = element("textarea", { rows: 2, maxLength: MAX_COMMENT, dir: "auto" });
  const label = element("label", {}, context.say("comment"), field);
  const form = element("form", {}, label, element("button", { type: "submit", textContent: context.say("commentSend") }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const comment = field.value.trim();
    if (comment) send(comment);
    else field.focus();
  });
  return form;
}

/** The steps of an answer, folded below it, if the gateway sends them (a setting of the site). */

import { element } from "./dom";
import type { Say } from "./words";
import type { Answered } from "./wire";

/** `question`: what was searched for; `passages`: how many were found. */
export function stepsFold(say: Say, question: string, passages: number, answer: Answered): HTMLElement | null {
  if (answer.trace === undefined || !passages) return null;
  const looked = answer.trace.flatMap(({ asked }) => (asked ? [say("stepLooked", { asked })] : []));
  const steps = [
    say("stepSearched", { question }),
    say("stepRead", { count: passages }),
    ...looked,
    say(answer.extractive ? "stepQuoted" : "stepWrote"),
    ...(answer.left_out ? [say("stepLeftOut", { count: answer.left_out })] : []),
  ];
  const items = steps.map((step) => element("li", { dir: "auto", textContent: step }));
  return element("details", { className: "steps" }, element("summary", { textContent: say("steps") }), element("ol", {}, ...items));
}

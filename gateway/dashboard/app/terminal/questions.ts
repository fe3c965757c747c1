/**
 * Programs ask a terminal what it is and where its cursor stands, and it answers as if somebody had typed. What is
 * shown once more was answered when it was new: answered again, it would be typed into whatever runs now.
 */
import type { Terminal } from "@xterm/xterm";

/** Leaves questions in output without an answer for as long as `isOld` says so. */
export function leaveOldQuestions({ parser }: Terminal, isOld: () => boolean): void {
  for (const prefix of [undefined, ">", "="] as const) parser.registerCsiHandler({ ...(prefix ? { prefix } : {}), final: "c" }, isOld);
  for (const prefix of [undefined, "?"] as const) {
    parser.registerCsiHandler({ ...(prefix ? { prefix } : {}), final: "n" }, isOld);
    parser.registerCsiHandler({ ...(prefix ? { prefix } : {}), intermediates: "$", final: "p" }, isOld);
  }
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, isOld);
  for (const colour of [4, 10, 11, 12]) parser.registerOscHandler(colour, (data) => isOld() && data.includes("?"));
}

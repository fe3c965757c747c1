/** Whether the worker takes calls: only after its records agree with what runs, and not once it was told to stop. */
import { errors } from "../shared/known-errors.ts";
import type { Counters } from "./counters.ts";

export class Phase {
  #now: "starting" | "serving" | "draining" = "starting";

  get isServing(): boolean {
    return this.#now === "serving";
  }

  serve(): void {
    this.#now = "serving";
  }

  /** From now on new work is refused; running work is finished. */
  drain(): void {
    this.#now = "draining";
  }
}

/** For the beginning of a call, before anything is done. The refusal is counted. @throws {SandgateError} `unavailable` */
export function refuseUnlessServing({ phase, counters }: { readonly phase: Phase; readonly counters: Counters }): void {
  if (phase.isServing) return;
  counters.refuse("draining");
  throw errors.stopping("worker", { refused: true });
}

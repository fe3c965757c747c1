/** Whether the worker takes calls: only after its records agree with what runs, and not once it was told to stop. */
import { errors } from "../shared/known-errors.ts";

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

  /** @throws {SandgateError} `unavailable` */
  refuseUnlessServing(): void {
    if (!this.isServing) throw errors.stopping("worker");
  }
}

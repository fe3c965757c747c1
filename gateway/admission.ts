/** The pipeline's limit step: whether a call may go on now. Bounds what one gateway holds at a time. */
import { SandgateError } from "../shared/errors.ts";

export class Admission {
  readonly #max: number;
  #inProgress = 0;
  #draining = false;

  constructor(max: number) {
    this.#max = max;
  }

  get inProgress(): number {
    return this.#inProgress;
  }

  /** From now on every new call is refused. */
  drain(): void {
    this.#draining = true;
  }

  /** Lets a call in; it must be let out again. @throws {SandgateError} `unavailable`. */
  enter(): () => void {
    if (this.#draining) throw new SandgateError("unavailable", "the gateway is shutting down");
    if (this.#inProgress >= this.#max) throw new SandgateError("unavailable", "the gateway is busy");
    this.#inProgress++;
    let inside = true;
    return () => {
      if (inside) this.#inProgress--;
      inside = false;
    };
  }
}

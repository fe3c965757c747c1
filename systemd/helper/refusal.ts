import type { Fault } from "../../shared/privileged.ts";

/** A request that was not carried out. Its message is told to the worker. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly fault: Fault;
  constructor(fault: Fault, message: string) {
    super(message);
    this.fault = fault;
  }
}

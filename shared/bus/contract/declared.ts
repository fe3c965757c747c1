/** How a call is declared. */
import type { TSchema } from "typebox";
import type { Config } from "../../config.ts";

/** Settings that decide how long a call may take. */
export type TimeSettings = Pick<Config, "imagePullTimeoutMs">;

interface Call {
  readonly request: TSchema;
  /** Absent: nobody answers, and whoever says it does not hear whether it arrived. */
  readonly reply?: TSchema;
  /** How long the answer is waited for; `given`: as long as each call says. */
  readonly timeoutMs?: number | ((settings: TimeSettings) => number) | "given";
  /** Present where a stream to the target that the request names begins with the call. */
  readonly stream?: {
    /** What says how it ended. */
    readonly end?: TSchema;
    /** The same for what the caller sends on it. */
    readonly sent?: TSchema;
    /** What is said on it beside bytes. */
    readonly notice?: TSchema;
  };
  /** Workers may ask as well; else only gateways do. `by name`: only workers, on a subject that ends in the id of who asks, which the server makes sure of. */
  readonly byWorkers?: true | "by name";
}

/** Calls by their verbs. */
export type Declared = Readonly<Record<string, Call>>;

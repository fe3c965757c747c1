/** What openapi.json says of a route beyond its method, path and the schemas of what it takes. */
import type { Static, TSchema } from "typebox";
import type { ErrorCode, ReasonedCode, ReasonOf } from "../../shared/errors.ts";

/** The groups of calls, in the order in which the reference shows them. */
export const tags = {
  Sandboxes: "Isolated Linux environments: make them, see them, end them.",
  Executions: "Commands in a sandbox, answered whole or streamed.",
  "Live sessions": "Interactive programs over a WebSocket, which live on when the connection drops.",
  Files: "Files into a sandbox and out of it.",
  Snapshots: "Point-in-time copies of sandboxes, to be restored as often as one likes.",
  Account: "Who one is, one's keys, and what is left of the limits.",
  Browser: "What the web pages do to sign up and log in. Programs use an API key instead.",
  Operator: "For operators of the installation: accounts, keys, workers, images and sandboxes of everybody.",
  Operations: "Whether the service works, and this reference. No key is needed.",
} as const;
export type Tag = keyof typeof tags;

/** One way in which a call fails. */
export interface Failure {
  readonly when: string;
  /** A message as it may read. */
  readonly message: string;
}
export type Failures = { readonly [C in ErrorCode]?: C extends ReasonedCode ? Failure & { readonly reason: ReasonOf<C> } : Failure };

/** A body of some media type. */
export interface Content {
  readonly type: string;
  /** Absent for bytes. */
  readonly schema?: TSchema;
  /** A JSON value, or the text of the whole body for other types. */
  readonly example?: unknown;
}

/** @template A the schema of its JSON, which is the type of what the handler answers with */
export interface Success<A extends TSchema = TSchema> {
  readonly status: 101 | 200 | 201;
  readonly description: string;
  readonly content: readonly Content[];
  /** Absent for what is no JSON. */
  readonly answer?: A;
}

export interface OperationDocs<A extends TSchema = TSchema> {
  readonly tag: Tag;
  /** `operationId`: generated clients name their functions by it. */
  readonly name: string;
  readonly summary: string;
  /** Paragraphs, in the Markdown that openapi.json has. */
  readonly description?: string;
  /** What `{id}` stands for. */
  readonly of?: "sandbox" | "snapshot" | "key" | "account" | "worker" | "image";
  /** Example values of query parameters. */
  readonly query?: Readonly<Record<string, string | number>>;
  /** An example of a JSON body. */
  readonly body?: object;
  /** The bodies of a call that takes a file. */
  readonly file?: readonly Content[];
  /** Takes an `Idempotency-Key`. */
  readonly once?: true;
  readonly success: Success<A>;
  /** Other answers that are not errors. */
  readonly others?: readonly (Omit<Success, "status"> & { readonly status: number })[];
  /** Beside those that all calls of its kind have. */
  readonly failures: Failures;
  /** What follows the address in the example for curl, where that cannot be told from the rest. */
  readonly curl?: string;
  /** The command whose output curl sends. */
  readonly input?: string;
  /** An example for the client library, where curl cannot do it. */
  readonly program?: string;
}

export const json = <A extends TSchema>(schema: A, example: Static<A>): readonly Content[] => [{ type: "application/json", schema, example }];
const success =
  (status: 200 | 201) =>
  <A extends TSchema>(description: string, schema: A, example: Static<A>): Success<A> & { readonly answer: A } => ({
    ...{ status, description, content: json(schema, example), answer: schema },
  });
/** A successful answer with a JSON body. */
export const ok = success(200);
export const made = success(201);

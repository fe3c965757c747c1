/** The documentation of a route for openapi.json, beyond its method, path and input schemas. */
import type { Static, TObject, TSchema } from "typebox";
import type { ErrorCode, ReasonedCode, ReasonOf } from "../../shared/errors.ts";
import type { Endpoint } from "../http/exchange.ts";

/** The groups of operations, in the order of the reference. */
export const tags = {
  Sandboxes: "Isolated Linux environments: create, inspect and delete them.",
  Executions: "Commands in a sandbox, with their output returned at the end or streamed.",
  "Live sessions": "Interactive programs over a WebSocket, which keep running when the connection drops.",
  Files: "Upload files to a sandbox and download them.",
  Snapshots: "Point-in-time copies of sandboxes, which can be restored any number of times.",
  Account: "Your account, its API keys, and what is left of its limits.",
  Browser: "The calls of the web pages to sign up and log in. Programs use an API key instead.",
  Operator: "For operators of the installation: the accounts, keys, workers, images and sandboxes of all users.",
  Operations: "Health checks and this reference. No key is needed.",
} as const;
export type Tag = keyof typeof tags;

/** One way in which a call can fail. */
export interface Failure {
  readonly when: string;
  /** An example message. */
  readonly message: string;
}
export type Failures = { readonly [C in ErrorCode]?: C extends ReasonedCode ? Failure & { readonly reason: ReasonOf<C> } : Failure };

/** A body of one media type. */
export interface Content {
  readonly type: string;
  /** Absent for bytes. */
  readonly schema?: TSchema;
  /** A JSON value; for other types, the text of the whole body. */
  readonly example?: unknown;
}

/** @template A the schema of the JSON answer, which also types the handler's answer */
export interface Success<A extends TSchema = TSchema> {
  readonly status: 101 | 200 | 201;
  readonly description: string;
  readonly content: readonly Content[];
  /** Absent for answers that are not JSON. */
  readonly answer?: A;
}

export interface OperationDocs<A extends TSchema = TSchema> {
  readonly tag: Tag;
  /** The `operationId`, after which generated clients name their functions. */
  readonly name: string;
  readonly summary: string;
  /** Paragraphs in Markdown. */
  readonly description?: string;
  /** The kind of resource that `{id}` identifies. */
  readonly of?: "sandbox" | "snapshot" | "key" | "account" | "worker" | "image";
  /** Example values of query parameters. */
  readonly query?: Readonly<Record<string, string | number>>;
  /** An example of a JSON body. */
  readonly body?: object;
  /** The bodies that a file upload accepts. */
  readonly file?: readonly Content[];
  /** Whether the call accepts an `Idempotency-Key`. */
  readonly once?: true;
  readonly success: Success<A>;
  /** Other documented answers that do not use the error envelope. */
  readonly others?: readonly (Omit<Success, "status"> & { readonly status: number })[];
  /** Errors in addition to those of all calls of its kind. */
  readonly failures?: Failures;
  /** Arguments after the URL in the curl example, if they cannot be derived. */
  readonly curl?: string;
  /** The command whose output is piped to curl. */
  readonly input?: string;
  /** An example with the client library, for what curl cannot do. */
  readonly program?: string;
}

/** Declares an operation of this group. */
export const operationsOf =
  (tag: Tag) =>
  <D extends Omit<OperationDocs, "tag">>(docs: D): D & { readonly tag: Tag } => ({ tag, ...docs });

export const json = <A extends TSchema>(schema: A, example: Static<A>): readonly Content[] => [{ type: "application/json", schema, example }];
const success =
  (status: 200 | 201) =>
  <A extends TSchema>(description: string, schema: A, example: Static<A>): Success<A> & { readonly answer: A } => ({
    ...{ status, description, content: json(schema, example), answer: schema },
  });
/** A successful answer with a JSON body. */
export const ok = success(200);
export const made = success(201);

interface Told extends Endpoint {
  /** `page` marks a route that serves the web pages and is not part of the API. */
  readonly docs: OperationDocs | "page";
}

/** Facts about a route that bypasses the pipeline. */
export interface OpenFacts extends Told {
  readonly access: "open";
}

/** Facts about an API call. */
export interface CallFacts extends Told {
  /**
   * Who may call. `account`: with an API key or logged in on the web page. `person`: only logged in. `operator`: an operator's
   * account. `anyone`: without authentication; browsers only from our own pages.
   */
  readonly access: "account" | "person" | "operator" | "anyone";
  /** Whether the call asks who is logged in, so that a browser may call it without naming an account. */
  readonly asksWho: boolean;
  readonly query: { readonly schema: TObject };
  /** `file`: the handler reads the body itself, as a stream. */
  readonly body: { readonly schema: TSchema } | "file";
}

export type RouteFacts = OpenFacts | CallFacts;

/** A route that the reference documents. */
export type DocumentedRoute = RouteFacts & { readonly docs: OperationDocs };

/** Routes that serve the web pages are not documented. */
export const isDocumented = <R extends RouteFacts>(route: R): route is R & { readonly docs: OperationDocs } => typeof route.docs === "object";

/** The path in OpenAPI syntax. */
export const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}");

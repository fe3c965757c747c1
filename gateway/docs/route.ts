/** What the reference is told of a route. */
import type { TObject, TSchema } from "typebox";
import type { Endpoint } from "../http/exchange.ts";
import type { OperationDocs } from "./operation.ts";

interface Told extends Endpoint {
  /** `page` is for browsers that load the web pages, and no call. */
  readonly docs: OperationDocs | "page";
}

/** Of a route that is answered without the pipeline. */
export interface OpenFacts extends Told {
  readonly access: "open";
}

/** Of a call. */
export interface CallFacts extends Told {
  /**
   * Who may call: `account` with an API key or logged in on the web page, `person` only logged in, `operator` an account
   * that is one, `anyone` from our own pages.
   */
  readonly access: "account" | "person" | "operator" | "anyone";
  /** Whether it asks who is logged in: a browser may call it without naming an account. */
  readonly asksWho: boolean;
  readonly query: { readonly schema: TObject };
  /** `file`: the handler reads the body itself, as a stream. */
  readonly body: { readonly schema: TSchema } | "file";
}

export type RouteFacts = OpenFacts | CallFacts;

/** A route that the document tells of. */
export type DocumentedRoute = RouteFacts & { readonly docs: OperationDocs };

/** Routes for browsers that load the pages are no calls. */
export const isDocumented = <R extends RouteFacts>(route: R): route is R & { readonly docs: OperationDocs } => typeof route.docs === "object";

/** The path as OpenAPI writes it. */
export const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}");

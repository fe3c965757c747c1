/** The facts about a route that the reference is generated from. */
import type { TObject, TSchema } from "typebox";
import type { Endpoint } from "../http/exchange.ts";
import type { OperationDocs } from "./operation.ts";

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

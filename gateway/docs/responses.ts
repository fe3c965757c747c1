/** Generates the responses of an operation: its success, and its errors by status. */
import { type ErrorCode, statusOf } from "../../shared/errors.ts";
import { ErrorAnswer } from "../../shared/schemas/fields.ts";
import { ids } from "./examples.ts";
import { commonFailures, noSuch, openFailures, repeated } from "./failures.ts";
import type { Content, DocumentedRoute, Failure, Failures } from "./operation.ts";
import type { Json, Schemas } from "./schema.ts";

/** Statuses of errors that carry `Retry-After`. */
const withRetry: ReadonlySet<number> = new Set([429, 503]);

const headerRef = (name: string): Json => ({ $ref: `#/components/headers/${name}` });

/** All the ways in which a call of this route can fail. */
export function failuresOf(route: DocumentedRoute): Failures {
  const { of, once, failures } = route.docs;
  const common = route.access === "open" ? openFailures : commonFailures(route);
  return { ...common, ...(of ? noSuch(of) : {}), ...failures, ...(once ? repeated : {}) };
}

/** Whether responses carry rate limit headers: for all routes with an authenticated caller. */
const isCounted = ({ access }: DocumentedRoute): boolean => access !== "open" && access !== "anyone";

export class Responses {
  readonly #schemas: Schemas;
  /** Error responses that several operations share, by their JSON text. */
  readonly #shared = new Map<string, { readonly name: string; readonly response: Json }>();

  constructor(schemas: Schemas, routes: readonly DocumentedRoute[]) {
    this.#schemas = schemas;
    const counts = new Map<string, number>();
    for (const route of routes) {
      for (const { status, codes, response } of this.#errors(route)) {
        const text = JSON.stringify(response);
        const count = (counts.get(text) ?? 0) + 1;
        counts.set(text, count);
        if (count === 2) this.#shared.set(text, { name: this.#newName(status, codes), response });
      }
    }
  }

  get shared(): Readonly<Record<string, Json>> {
    return Object.fromEntries([...this.#shared.values()].map(({ name, response }) => [name, response]));
  }

  of(route: DocumentedRoute): Json {
    const { success, others = [], once } = route.docs;
    const headers = { ...this.#headers(route), ...(once ? { "Idempotency-Replayed": headerRef("Idempotency-Replayed") } : {}) };
    const successes = [success, ...others].map(({ status, description, content }) => [
      status,
      { description, headers, ...(content.length > 0 ? { content: this.contents(content) } : {}) },
    ]);
    const errors = this.#errors(route).map(({ status, response }) => {
      const shared = this.#shared.get(JSON.stringify(response));
      return [status, shared ? { $ref: `#/components/responses/${shared.name}` } : response];
    });
    return Object.fromEntries([...successes, ...errors]);
  }

  /** Bodies by media type. */
  contents(contents: readonly Content[]): Json {
    return Object.fromEntries(
      contents.map(({ type, schema, example }) => [
        type,
        { ...(schema ? { schema: this.#schemas.of(schema) } : {}), ...(example === undefined ? {} : { example }) },
      ]),
    );
  }

  #errors(route: DocumentedRoute): { status: number; codes: ErrorCode[]; response: Json }[] {
    const failures = Object.entries(failuresOf(route)) as [ErrorCode, Failure][];
    const byStatus = Map.groupBy(failures, ([code]) => statusOf[code]);
    return [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, ways]) => ({ status, codes: ways.map(([code]) => code), response: this.#error(route, status, ways) }));
  }

  #error(route: DocumentedRoute, status: number, ways: readonly [ErrorCode, Failure][]): Json {
    const examples = ways.map(([code, { when, ...error }]) => [code, { summary: when, value: { error: { code, ...error, request_id: ids.request } } }]);
    const headers = { ...this.#headers(route), ...(withRetry.has(status) ? { "Retry-After": headerRef("Retry-After") } : {}) };
    return {
      description: ways.map(([code, { when }]) => `\`${code}\`: ${when}`).join("\n\n"),
      headers,
      content: { "application/json": { schema: this.#schemas.of(ErrorAnswer), examples: Object.fromEntries(examples) } },
    };
  }

  #headers(route: DocumentedRoute): Json {
    const limits = isCounted(route) ? { RateLimit: headerRef("RateLimit"), "RateLimit-Policy": headerRef("RateLimit-Policy") } : {};
    return { "x-request-id": headerRef("x-request-id"), ...limits };
  }

  /** A name made from the error codes, such as `NotFound`; numbered if different responses have the same codes. */
  #newName(status: number, codes: readonly ErrorCode[]): string {
    const words = codes.join("_").split("_");
    const base = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("") || String(status);
    const taken = new Set([...this.#shared.values()].map(({ name }) => name));
    let name = base;
    for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
    return name;
  }
}

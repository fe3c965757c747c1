/**
 * The building blocks of the API schemas. The schemas are the only declaration of the API's shapes: inputs are checked against
 * them, the types of handlers, client and web pages are their `Static`, and openapi.json is generated from them.
 *
 * Three annotations are our own: `component` is the object's name in openapi.json; `takes` and `takesEntry` are the words in
 * which a message describes what a field accepts.
 */
import Type, { type Static, type TEnum, type TProperties, type TSchema, type TSchemaOptions } from "typebox";
import { errorCodes, errorReasons } from "../errors.ts";

export const text = (description: string) => Type.String({ description });
export const count = (description: string) => Type.Integer({ description, minimum: 0 });
export const flag = (description: string) => Type.Boolean({ description });
/** ISO 8601 in UTC. */
export const time = (description: string) => Type.String({ description, format: "date-time" });
export const orNull = <T extends TSchema>(schema: T, options: TSchemaOptions) => Type.Union([schema, Type.Null()], options);
export const textOrNull = (description: string) => orNull(Type.String(), { description });
export const timeOrNull = (description: string) => orNull(Type.String({ format: "date-time" }), { description });
export const oneOf = <V extends string>(values: readonly V[], options: TSchemaOptions) => Type.Enum([...values], options) as TEnum<V[]>;

/** An object that has a name of its own in openapi.json. */
export const component = <P extends TProperties>(name: string, properties: P, description?: string) =>
  Type.Object(properties, { component: name, ...(description ? { description } : {}) });

export const message = text("What was done, in words for people.");
/** An id as a query parameter. */
export const idOf = (description: string) => Type.String({ description, minLength: 1, maxLength: 64 });

export const Name = Type.String({
  description: "A display name; it need not be unique.",
  pattern: "^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$",
  takes: "1 to 63 characters: letters, digits, '_', '.', '-', starting with a letter or digit",
});

/** The schema's description, followed by its bounds in the same words as the message that refuses values outside them. */
export function wordsOf({ description, takes, takesEntry }: Readonly<Record<string, unknown>>): string {
  return [description, takes ? `Must be ${takes}.` : "", takesEntry ? `Each must be ${takesEntry}.` : ""].filter(Boolean).join(" ");
}

/** The default number of items on a page. */
export const pageSizeDefault = 20;

const page = Type.Optional(
  Type.Integer({ description: "Page number, starting at 1.", default: 1, minimum: 1, maximum: 1_000_000, takes: "a whole number from 1" }),
);

/** The query parameters of a list. @param sizeDefault the default number of items on a page */
export const pageQuery = (sizeDefault = pageSizeDefault) => {
  const bounds = { minimum: 1, maximum: 100, takes: "between 1 and 100 (a whole number)" };
  return Type.Object({ page, page_size: Type.Optional(Type.Integer({ description: "Number of items per page.", default: sizeDefault, ...bounds })) });
};
export const PageQuery = pageQuery();
export type PageQuery = Static<typeof PageQuery>;

export const Pagination = component("Pagination", {
  page: count("Number of this page, starting at 1."),
  page_size: count("Number of items per page."),
  total_items: count("Number of items on all pages."),
  total_pages: count("Number of pages."),
});
export type Pagination = Static<typeof Pagination>;

/** The schema of one page of a list. @param more further members of the answer */
export const pageOf = <T extends TSchema, M extends TProperties = Record<never, never>>(name: string, item: T, more: M = {} as M) =>
  component(name, { data: Type.Array(item), pagination: Pagination, ...more });

export const ErrorCode = oneOf(errorCodes, { component: "ErrorCode", description: "What is wrong, for programs. A closed set." });
export const ErrorReason = oneOf(errorReasons, {
  component: "ErrorReason",
  description: "What exactly is wrong, for programs. A closed set. Present with the codes `forbidden`, `not_found` and `unprocessable`.",
});

export const ErrorAnswer = component("Error", {
  error: Type.Object({
    code: ErrorCode,
    reason: Type.Optional(ErrorReason),
    message: text("What is wrong, in words for people."),
    request_id: text("The `x-request-id` of this answer, which identifies the request in the server's log."),
  }),
});
export type ErrorAnswer = Static<typeof ErrorAnswer>;

/** Paginated lists. */
import Type, { type Static, type TProperties, type TSchema } from "typebox";
import { component, count } from "./fields.ts";

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

/** Lists that come in pages. */
import Type, { type Static, type TProperties, type TSchema } from "typebox";
import { component, count } from "./fields.ts";

/** Items on a page where the caller says nothing. */
export const pageSizeDefault = 20;

const page = Type.Optional(Type.Integer({ description: "Which page.", default: 1, minimum: 1, maximum: 1_000_000, takes: "a whole number from 1" }));

/** The parameters of a list. @param sizeDefault items on a page where the caller says nothing */
export const pageQuery = (sizeDefault = pageSizeDefault) => {
  const bounds = { minimum: 1, maximum: 100, takes: "between 1 and 100 (a whole number)" };
  return Type.Object({ page, page_size: Type.Optional(Type.Integer({ description: "Items on a page.", default: sizeDefault, ...bounds })) });
};
export const PageQuery = pageQuery();
export type PageQuery = Static<typeof PageQuery>;

export const Pagination = component("Pagination", {
  page: count("This page, from 1."),
  page_size: count("Items on a page."),
  total_items: count("Items on all pages."),
  total_pages: count("Number of pages."),
});
export type Pagination = Static<typeof Pagination>;

/** The schema of one page of a list. @param more what the answer says beside it */
export const pageOf = <T extends TSchema, M extends TProperties = Record<never, never>>(name: string, item: T, more: M = {} as M) =>
  component(name, { data: Type.Array(item), pagination: Pagination, ...more });

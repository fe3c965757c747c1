/**
 * What the schemas of the API are made of. They are the only declaration of its shapes: what calls take is checked by them,
 * the types of handlers, client and web pages are `Static` of them, and openapi.json is made of them.
 *
 * Three annotations are our own: `component` is the name under which openapi.json has an object, `takes` and `takesEntry`
 * are how a message describes what a field accepts.
 */
import Type, { type TEnum, type TProperties, type TSchema, type TSchemaOptions } from "typebox";

export const text = (description: string) => Type.String({ description });
export const count = (description: string) => Type.Integer({ description, minimum: 0 });
export const flag = (description: string) => Type.Boolean({ description });
/** ISO 8601 in UTC. */
export const time = (description: string) => Type.String({ description, format: "date-time" });
export const orNull = <T extends TSchema>(schema: T, options: TSchemaOptions) => Type.Union([schema, Type.Null()], options);
export const textOrNull = (description: string) => orNull(Type.String(), { description });
export const timeOrNull = (description: string) => orNull(Type.String({ format: "date-time" }), { description });
export const oneOf = <V extends string>(values: readonly V[], options: TSchemaOptions) => Type.Enum([...values], options) as TEnum<V[]>;

/** An object that openapi.json has under a name. */
export const component = <P extends TProperties>(name: string, properties: P, description?: string) =>
  Type.Object(properties, { component: name, ...(description ? { description } : {}) });

export const message = text("What was done, for people.");
/** An id as part of a query. */
export const idOf = (description: string) => Type.String({ description, minLength: 1, maxLength: 64 });

export const Name = Type.String({
  description: "A name for people; it need not be unique.",
  pattern: "^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$",
  takes: "1 to 63 characters: letters, digits, '_', '.', '-', starting with a letter or digit",
});

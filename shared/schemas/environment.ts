/** Environment variables. */
import Type, { type Static } from "typebox";

/** Environment variables as they are stored and passed on; `EnvVars` is what callers may send. */
export const Environment = Type.Record(Type.String(), Type.String());
export type Environment = Static<typeof Environment>;

/**
 * The sandbox's variables, the command's variables and the command itself reach the kernel together in one exec call. With a
 * stack of 8 MiB, Linux accepts 2 MiB in total and 128 KiB for a single string.
 */
const variables = { countMax: 1_000, nameMax: 255, bytesMax: 64 * 1024, bytesMaxOfAll: 256 * 1024 } as const;

/** Whether the number and sizes of the variables are within the limits of a sandbox or command. */
export function isFitting(environment: Environment): boolean {
  const encoder = new TextEncoder();
  const bytes = (text: string): number => encoder.encode(text).length;
  const values = Object.values(environment).map(bytes);
  const names = Object.keys(environment).map(bytes);
  const total = [...names, ...values].reduce((sum, size) => sum + size, 0);
  return values.length <= variables.countMax && values.every((size) => size <= variables.bytesMax) && total <= variables.bytesMaxOfAll;
}

/** Names follow POSIX; values contain no NUL. */
const Variables = Type.Record(
  Type.String({ pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${variables.nameMax - 1}}$` }),
  Type.String({ pattern: "^[^\\u0000]*$", maxLength: variables.bytesMax }),
  {
    additionalProperties: false,
    maxProperties: variables.countMax,
    description: "Environment variables.",
    takes: `an object of at most ${variables.countMax} variables, with at most ${variables.bytesMax} bytes each and ${variables.bytesMaxOfAll} together`,
    takesEntry: `a string without NUL of at most ${variables.bytesMax} characters, under a name of at most ${variables.nameMax} letters, digits and '_'`,
  },
);
export const EnvVars = Type.Refine(Variables, isFitting, () => "too many or too long");

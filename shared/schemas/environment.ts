/** Environment variables. */
import Type, { type Static } from "typebox";

/** Environment variables as they are kept and passed on; `EnvVars` is what a caller may give. */
export const Environment = Type.Record(Type.String(), Type.String());
export type Environment = Static<typeof Environment>;

/**
 * A sandbox's variables, those of one command and the command itself go to the kernel together, which takes 2 MiB with a
 * stack of 8 MiB, and 128 KiB for one of them.
 */
const variables = { countMax: 1_000, nameMax: 255, bytesMax: 64 * 1024, bytesMaxOfAll: 256 * 1024 } as const;

/** Whether there are no more variables, and no longer ones, than a sandbox or a command may have. */
export function isFitting(environment: Environment): boolean {
  const encoder = new TextEncoder();
  const bytes = (text: string): number => encoder.encode(text).length;
  const values = Object.values(environment).map(bytes);
  const names = Object.keys(environment).map(bytes);
  const total = [...names, ...values].reduce((sum, size) => sum + size, 0);
  return values.length <= variables.countMax && values.every((size) => size <= variables.bytesMax) && total <= variables.bytesMaxOfAll;
}

/** Names as POSIX has them, values without NUL. */
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

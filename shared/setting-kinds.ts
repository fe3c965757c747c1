/** The kinds of settings: what each takes, and how its text is read. */
import { isIP } from "node:net";
import { readPairs } from "./util/pairs.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<T> {
  readonly takes: string;
  readonly about: string;
  readonly fallback: T | ((environment: Environment) => T);
  /** The variable, where its name is not made from the setting's: what other products call the same thing. */
  readonly variable?: string;
  /** A credential: it can also be read from a file, whose path is in the variable of the same name with the suffix `_FILE`. */
  readonly secret?: true;
  /** The path of a file. */
  readonly file?: true;
  parse(text: string): T | undefined;
}

export const text = (fallback: Setting<string>["fallback"], about: string, secret?: true): Setting<string> => ({
  fallback,
  about,
  takes: "text",
  ...(secret ? { secret } : {}),
  parse: (value) => (value.includes("\0") ? undefined : value),
});

export const file = (about: string): Setting<string> => ({ ...text("", about), file: true });

export const ipAddress = (about: string): Setting<string> => ({
  ...text("", about),
  takes: "an IP address of this machine",
  parse: (value) => (isIP(value) === 0 && value !== "" ? undefined : value),
});

export const integer = (fallback: number, min: number, max: number, about: string): Setting<number> => ({
  fallback,
  about,
  takes: `a whole number from ${min} to ${max}`,
  parse: (value) => {
    const number = Number(value);
    return /^\d+$/.test(value) && number >= min && number <= max ? number : undefined;
  },
});

export const flag = (fallback: boolean, about: string): Setting<boolean> => ({
  fallback,
  about,
  takes: "true or false",
  parse: (value) => ({ true: true, "1": true, false: false, "0": false })[value.toLowerCase()],
});

export const choice = <T extends string>(fallback: T, options: readonly T[], about: string): Setting<T> => ({
  fallback,
  about,
  takes: options.join(", "),
  parse: (value) => options.find((option) => option === value),
});

export const list = (about: string): Setting<readonly string[]> => listOf("a comma-separated list", (item) => item, about);

/** A list whose items are checked and normalized; one invalid item makes the whole list invalid. */
export const listOf = (takes: string, parseItem: (item: string) => string | undefined, about: string): Setting<readonly string[]> => ({
  fallback: [],
  about,
  takes,
  parse: (value) => {
    const items = value.split(",").map((item) => item.trim());
    const parsed = items.filter(Boolean).map(parseItem);
    return parsed.includes(undefined) ? undefined : (parsed as string[]);
  },
});

/** A setting that OpenTelemetry has named for everybody. */
export const openTelemetry = <T>(name: string, setting: Setting<T>): Setting<T> => ({ ...setting, variable: `OTEL_${name}` });

export const httpUrl = (about: string): Setting<string> => ({
  fallback: "",
  about,
  takes: "an http or https URL without a user name or password",
  parse: (value) => {
    const { protocol, username, password } = URL.parse(value) ?? {};
    return (protocol === "http:" || protocol === "https:") && !username && !password ? value : undefined;
  },
});

const pairsOf = (about: string, isPair: (name: string, value: string) => boolean): Setting<string> => ({
  fallback: "",
  about,
  takes: "a comma-separated list such as name=value,other=percent%20encoded",
  parse: (value) => (readPairs(value)?.every((pair) => isPair(...pair)) ? value : undefined),
});

export const pairs = (about: string): Setting<string> => pairsOf(about, () => true);

/** Headers of HTTP, of which some are credentials. */
export const httpHeaders = (about: string): Setting<string> => ({
  ...pairsOf(about, (name, value) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && /^[\x20-\x7e]*$/.test(value)),
  secret: true,
});

export const ratio = (about: string): Setting<number> => ({
  fallback: 1,
  about,
  takes: "a number from 0 to 1",
  parse: (value) => (/^(0|1|0?\.\d+|[01]\.\d*)$/.test(value) && Number(value) <= 1 ? Number(value) : undefined),
});

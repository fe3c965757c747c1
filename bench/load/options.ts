/** The command line of `npm run load`. */
import { readKey } from "../../shared/cli/admin/installation.ts";
import { UsageError } from "../../shared/cli/failures.ts";
import { type Access, findAccess } from "../../shared/cli/settings.ts";
import { spanMs, whole } from "../../shared/cli/values.ts";
import { readArguments } from "../arguments.ts";
import { profileNames, readWorkload, userPath, type Workload } from "./workload.ts";

export interface LoadOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The name of the workload. */
  readonly mix: string;
  readonly workload: Workload;
  /** Arrivals a second; with `isLimitWanted`, the first rate that is tried. */
  readonly rate: number;
  readonly durationMs: number;
  readonly inFlightMax: number;
  readonly seed: number;
  readonly isLimitWanted: boolean;
  readonly p99MsMax: number;
  /** How long the removal of sandboxes is tried. */
  readonly cleanUpMs: number;
  readonly jsonFile: string | undefined;
  readonly htmlFile: string | undefined;
}

/** Exit codes beside those of the command line. */
export const loadExitCodes = { leftOver: 3, nothingSucceeded: 4, worse: 5 } as const;

const defaults = { mix: "agents", rate: "10", duration: "60s", limitDuration: "10s", inFlight: "1024", seed: "1", p99: "1s", cleanUp: "60s" } as const;

export const usage = `npm run load -- [OPTIONS]
npm run load -- compare A.json[,A2.json...] B.json[,B2.json...]

Loads a deployment at a fixed rate, whatever becomes of the answers, and reports latencies from when each call was due.
Everything that it makes is named load-RUNID-* and deleted at the end; it touches nothing else.

  --url URL        the gateway (default: SANDGATE_URL, else the one stored by sandgate login)
  --key-file FILE  a file with the API key (default: SANDGATE_API_KEY, else the one stored by sandgate login)
  --key KEY        the API key; other users of this machine can see it in the list of processes
  --mix MIX        the workload: a file such as ./mine.json or ./mine.ts, or one of
                   ${profileNames().join(", ")} (default ${defaults.mix})
  --rate N         arrivals a second (default ${defaults.rate})
  --duration SPAN  for how long, such as 60s or 10m (default ${defaults.duration}; ${defaults.limitDuration} for each rate of --find-limit)
  --find-limit     find the rate at which the deployment bends, from --rate on
  --p99 SPAN       with --find-limit: what the 99th percentile may be (default ${defaults.p99})
  --seed N         which step comes next and in which sandbox; the same seed repeats it (default ${defaults.seed})
  --in-flight N    how many actions may be under way (default ${defaults.inFlight})
  --clean-up SPAN  how long deleting is tried at the end (default ${defaults.cleanUp})
  --json FILE      write the result as JSON
  --html FILE      write a report with plots

Exit codes: 0 success, 1 failure, 2 wrong usage, ${loadExitCodes.leftOver} sandboxes are left over, ${loadExitCodes.nothingSucceeded} no action succeeded, ${loadExitCodes.worse} (compare) something is slower
or fails more often, 130 interrupted.
`;

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;
const names = {
  ...{ url: text, key: text, "key-file": text, mix: text, rate: text, duration: text, "find-limit": flag, p99: text, seed: text },
  ...{ "in-flight": text, "clean-up": text, json: text, html: text, help: { ...flag, short: "h" } },
} as const;

export type Wanted =
  | { readonly kind: "help" }
  | { readonly kind: "compare"; readonly base: readonly string[]; readonly other: readonly string[] }
  | { readonly kind: "load"; readonly options: LoadOptions };

/** @throws {UsageError} also for a workload with an error in it */
export async function parseOptions(args: readonly string[]): Promise<Wanted> {
  const { values, positionals } = readArguments(args, names);
  if (values.help) return { kind: "help" };
  const [command, ...files] = positionals;
  if (command === "compare") return comparison(files);
  if (command !== undefined) throw new UsageError(`unknown argument: ${command}`);
  const { name: mix, workload } = await readWorkload(values.mix ?? defaults.mix);
  const isLimitWanted = values["find-limit"] ?? false;
  const unfit = (["rate", "duration", "find-limit"] as const).find((option) => values[option] !== undefined);
  if (workload.phases && unfit) throw new UsageError(`--${unfit} does not go with ${mix}, whose arrivals come by number`);
  if (values.p99 !== undefined && !isLimitWanted) throw new UsageError("--p99 goes with --find-limit only");
  const access = await accessOf(values);
  const options: LoadOptions = {
    ...{ ...access, mix, workload, isLimitWanted, rate: rateOf(values.rate ?? defaults.rate) },
    durationMs: spanMs("--duration")(values.duration ?? (isLimitWanted ? defaults.limitDuration : defaults.duration)),
    inFlightMax: whole("--in-flight", 1)(values["in-flight"] ?? defaults.inFlight),
    seed: whole("--seed", 0)(values.seed ?? defaults.seed),
    p99MsMax: spanMs("--p99")(values.p99 ?? defaults.p99),
    cleanUpMs: spanMs("--clean-up")(values["clean-up"] ?? defaults.cleanUp),
    jsonFile: values.json === undefined ? undefined : userPath(values.json),
    htmlFile: values.html === undefined ? undefined : userPath(values.html),
  };
  return { kind: "load", options };
}

function comparison(files: readonly string[]): Wanted {
  const [base, other] = files.map((file) => file.split(",").filter(Boolean));
  if (files.length !== 2 || !base?.length || !other?.length) throw new UsageError("compare takes two results, such as before.json after.json");
  return { kind: "compare", base, other };
}

function rateOf(text: string): number {
  const rate = /^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
  if (rate <= 0) throw new UsageError("--rate takes a number of arrivals a second, such as 50 or 0.5");
  return rate;
}

async function accessOf({ url, key, "key-file": file }: { url?: string; key?: string; "key-file"?: string }): Promise<Access> {
  if (key !== undefined && file !== undefined) throw new UsageError("--key and --key-file do not go together");
  return findAccess(url, file === undefined ? key : await readKey(userPath(file)));
}

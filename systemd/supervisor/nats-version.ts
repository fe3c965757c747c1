/** What the installed NATS server can do. */
import { run } from "../base/run.ts";
import type { HostCheck } from "./banner.ts";

/** The first with the mends of JetStream that a cluster under load needs. */
const preferred = [2, 10, 23] as const;

export interface NatsVersion {
  /** Such as 2.10.27. */
  readonly text: string;
  /** Whether it can write every change to disk before it confirms it. Older ones do not know the setting and refuse to start with it. */
  readonly syncsAlways: boolean;
  readonly isPreferred: boolean;
}

export const natsVersion = async (): Promise<NatsVersion> => parseNatsVersion(await run(["nats-server", "--version"]));

/** @param output of `nats-server --version` */
export function parseNatsVersion(output: string): NatsVersion {
  const text = /v(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? "0.0.0";
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  const isAtLeast = (...[wantedMajor, wantedMinor, wantedPatch]: readonly [number, number, number]): boolean =>
    (major - wantedMajor || minor - wantedMinor || patch - wantedPatch) >= 0;
  return { text, syncsAlways: isAtLeast(2, 10, 0), isPreferred: isAtLeast(...preferred) };
}

export function natsCheck({ text, syncsAlways, isPreferred }: NatsVersion): HostCheck {
  const better = `${preferred.join(".")} or later is better`;
  const note = syncsAlways ? better : `a power cut can take the changes of the last two minutes; ${better}`;
  return { name: "nats_server", value: text, ok: true, ...(isPreferred ? {} : { note }) };
}

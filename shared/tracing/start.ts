/** Starts to record spans, if the settings name an endpoint. */
import type { Config } from "../config.ts";
import type { Logger } from "../util/log.ts";
import type { Shutdown } from "../util/shutdown.ts";
import { recordSpans } from "./spans.ts";

interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly shutdown: Shutdown;
}

/**
 * Call it before anything else is opened, so that the last spans are sent when everything else is closed.
 *
 * @param part of the product; `instance` says which of them
 */
export async function startTracing({ config, log, shutdown }: Parts, part: "gateway" | "worker", instance: string): Promise<void> {
  const url = tracesUrl(config);
  if (!url) return;
  const { openRecorder } = await import("./otlp.ts");
  const { record, close } = openRecorder(url, { config, part, instance, log });
  recordSpans(record);
  shutdown.onStop("traces", () => {
    recordSpans(undefined);
    return close();
  });
}

/** As the specification of OTLP exporters has it. Empty if there is no endpoint. */
function tracesUrl({ otlpEndpoint, otlpTracesEndpoint }: Config): string {
  if (otlpTracesEndpoint || !otlpEndpoint) return otlpTracesEndpoint;
  const url = new URL(otlpEndpoint);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`;
  return url.href;
}

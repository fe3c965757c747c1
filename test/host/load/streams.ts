/** Follows commands whose output is known. */
import { setTimeout as sleep } from "node:timers/promises";
import { appending } from "../../faults/tokens.ts";
import type { Report } from "./report.ts";
import type { Known } from "./sandboxes.ts";

const lines = 30;
const counting = `i=0; while [ $i -lt ${lines} ]; do echo $i; i=$((i+1)); sleep 0.2; done; exit 7`;
const wholeMs = 60_000;

interface Line {
  readonly stdout?: string;
  readonly exit_code?: number;
  readonly code?: string;
}

/** Whatever comes is the beginning of the output, and ends with the exit code or an error. */
export async function streamClient(report: Report, key: string, { id, tokens }: Known): Promise<void> {
  for (let turn = 0; !report.isOver; turn++) {
    const gateway = report.gateways[turn % report.gateways.length] ?? "";
    const token = `stream-${turn}`;
    tokens.set(token, "at most once");
    try {
      const response = await fetch(`${gateway}/v1/sandboxes/${id}/execute_async`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({ command: `${appending(token)}; ${counting}`, timeout: 30 }),
        signal: AbortSignal.timeout(wholeMs),
      });
      const text = await response.text();
      if (response.status === 200 && isWhole(report, text)) tokens.set(token, "once");
      if (![200, 503].includes(response.status)) report.fault(`a stream was answered ${response.status}: ${text.slice(0, 200)}`);
    } catch (error) {
      report.count(`stream ${(error as Error).name === "TimeoutError" ? "timeout" : "unreachable"}`);
    }
    await sleep(200);
  }
}

function isWhole(report: Report, text: string): boolean {
  const all = text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
  const output = all.map(({ stdout = "" }) => stdout).join("");
  const whole = Array.from({ length: lines }, (_, index) => `${index}\n`).join("");
  const { exit_code, code } = all.at(-1) ?? {};
  if (!whole.startsWith(output)) report.fault(`a stream brought ${JSON.stringify(output)}`);
  if (exit_code !== undefined && (exit_code !== 7 || output !== whole)) report.fault(`a stream ended with ${exit_code} after ${JSON.stringify(output)}`);
  if (exit_code === undefined && code === undefined) report.fault(`a stream ended without a word after ${JSON.stringify(output)}`);
  report.count(exit_code === undefined ? `stream ${code}` : "stream whole");
  return exit_code !== undefined;
}

/** Status lines as uWebSockets.js wants them. */
import { STATUS_CODES } from "node:http";

const lines = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]));

export function statusLine(status: number): string {
  return lines.get(status) ?? String(status);
}

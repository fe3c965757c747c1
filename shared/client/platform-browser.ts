/** Browsers. */
import { SandgateError } from "./errors.ts";
import type { Platform } from "./platform.ts";
import { openBrowserSocket } from "./session/socket-browser.ts";
import { fetchTransport } from "./transport-fetch.ts";

const noFiles = async (): Promise<never> => {
  throw new SandgateError("a browser cannot open files by path: use upload() and download()");
};

export const browserPlatform: Platform = {
  isBrowser: true,
  transport(socketPath) {
    if (socketPath !== undefined) throw new SandgateError("a browser has no Unix sockets");
    return fetchTransport((input, init) => globalThis.fetch(input, init));
  },
  // randomUUID is not available on pages without TLS.
  randomId: () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  openSocket: openBrowserSocket,
  readFile: noFiles,
  writeFile: noFiles,
};

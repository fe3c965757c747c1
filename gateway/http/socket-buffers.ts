/**
 * Bounds the kernel's buffers of every connection.
 *
 * uWebSockets.js reads a socket in a loop, without returning to the event loop, as long as each read fills nearly all of
 * its 512 KiB buffer; `pause()` has no effect meanwhile. A fast sender could thus occupy the gateway and fill its memory
 * (measured: 1 GiB on loopback). With a smaller kernel buffer the loop ends after one read, and `pause()` takes effect at
 * once.
 *
 * To a client that does not read, Linux takes up to 4 MiB for a connection, on the same machine at once, and all connections
 * of the machine share one limit: some hundred such clients would slow down even the heartbeats of the parts (measured: 3.8 MiB
 * each, of 2.2 GiB). What is on its way is not bounded, so that a distant client gets no less.
 *
 * Neither uWS nor Node can set the socket options, so they are set through the C library on the listening socket, from which
 * connections inherit them.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setReceiveBuffer, setUnsentBytesMax } from "../../shared/util/libc.ts";
import type { Logger } from "../../shared/util/log.ts";

/** Linux doubles this for its own bookkeeping, so a read returns less than 400 KiB. */
const receiveBufferBytes = 192 * 1024;
/** What waits in the kernel until the network takes it. */
const unsentBytesMax = 128 * 1024;
/** The state of a listening socket in /proc/net/tcp. */
const listening = "0A";

/** Sets the bounds on the socket that listens on this port. A failure is logged and otherwise ignored. */
export function boundSocketBuffers(port: number, log: Logger): void {
  try {
    for (const descriptor of listeningDescriptors(port)) {
      setReceiveBuffer(descriptor, receiveBufferBytes);
      setUnsentBytesMax(descriptor, unsentBytesMax);
    }
  } catch (error) {
    log.warn({ err: error }, "the buffers of connections could not be bounded: fast uploads and slow readers may take much memory");
  }
}

function listeningDescriptors(port: number): number[] {
  const inodes = new Set(["tcp", "tcp6"].flatMap((table) => socketsOf(table, port)));
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => inodes.has(inodeOf(descriptor)));
}

function socketsOf(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync(`/proc/self/net/${table}`, "utf8")
    .split("\n")
    .map((row) => row.trim().split(/\s+/));
  return rows.flatMap(([, local = "", , state, , , , , , inode = ""]) => (state === listening && local.endsWith(suffix) ? [inode] : []));
}

function inodeOf(descriptor: number): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1] ?? "";
  } catch {
    return "";
  }
}

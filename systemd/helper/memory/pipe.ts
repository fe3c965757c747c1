/**
 * A pipe that the worker has open. It gives the number of a descriptor, which may be anything that it could open, also a file that it
 * may only read: so nothing but a pipe without a name that belongs to its user is ever opened here.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync } from "node:fs";
import { Socket } from "node:net";
import { attempt } from "../../../shared/util/attempt.ts";
import type { ServedWorker } from "../map-ids.ts";
import { Refusal } from "../refusal.ts";

const pathOnly = 0o10000000;

/** @param direction what is done here @throws {Refusal} for anything else than a pipe of the worker's user */
export function openWorkersPipe({ pid, account }: ServedWorker, descriptor: number, direction: "read" | "write"): Socket {
  const place = attempt(() => openSync(`/proc/${pid}/fd/${descriptor}`, pathOnly));
  if (place === undefined) throw new Refusal("refused", `the worker has no descriptor ${descriptor}`);
  try {
    const name = `/proc/self/fd/${place}`;
    if (!/^pipe:\[\d+\]$/.test(readlinkSync(name)) || fstatSync(place).uid !== account.uid)
      throw new Refusal("refused", `descriptor ${descriptor} is not a pipe of the worker's`);
    const flags = direction === "read" ? constants.O_RDONLY : constants.O_WRONLY;
    const fd = openSync(name, flags | constants.O_NONBLOCK);
    return new Socket({ fd, readable: direction === "read", writable: direction === "write" });
  } finally {
    closeSync(place);
  }
}

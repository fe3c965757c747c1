/**
 * The privileged helper as a process of its own: serves its standard input and output until that ends. Started by root's sudo
 * with the arguments that say whom it serves, or by systemd for a connection to its socket, which only the worker's account may
 * open, with `--instance` and the name that systemd gives such a service.
 */
import { armFaults } from "../../shared/faults.ts";
import { searchPath } from "../base/search-path.mjs";
import { givenToHelper } from "../units/given.ts";
import { servedOf } from "./arguments.ts";
import { serve } from "./serve.ts";
import type { Served } from "./verbs.ts";

/** The end of the name: the process that connected, and its user. */
const peerPattern = /-(\d+)-(\d+)$/;

/** @throws {Error} when the other end is not of the worker's account */
function servedBySocket(instance: string): Served {
  const { worker, ...served } = servedOf(givenToHelper());
  const [, pid, uid] = peerPattern.exec(instance) ?? [];
  if (pid === undefined || Number(uid) !== worker.account.uid) throw new Error(`not a connection of the worker: ${instance}`);
  return { ...served, worker: { ...worker, pid: Number(pid) } };
}

const [first, ...rest] = process.argv.slice(2);

armFaults(process.env.SANDGATE_TEST_FAULT ?? "");
process.env.PATH = searchPath;
serve(process.stdin, process.stdout, first === "--instance" ? servedBySocket(rest[0] ?? "") : servedOf(process.argv.slice(2)));

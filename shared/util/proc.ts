/** Reads /proc. What is asked of a process that has gone is undefined. */
import { readdirSync, readFileSync } from "node:fs";
import { attempt } from "./attempt.ts";

/** The ids of all processes. */
export const processIds = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** The fields of a process's `stat` after its name, beginning with its state. */
export function statOf(pid: number): string[] | undefined {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  return text ? statFields(text) : undefined;
}

/** The fields after the second one, which is the program's name in parentheses and can contain anything. */
export const statFields = (text: string): string[] => text.slice(text.lastIndexOf(")") + 2).split(" ");

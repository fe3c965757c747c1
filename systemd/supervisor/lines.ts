/** The output of a part, line by line. A part that was taken over may write for ever without ending one. */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** Of one line; the rest of a longer one is dropped. */
const lineCharsMax = 1024 * 1024;

/** Calls back with each line, without its end. */
export function readLines(stream: Readable, take: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let line = "";
  const add = (text: string): void => {
    line += text.slice(0, lineCharsMax - line.length);
  };
  stream.on("data", (bytes: Buffer) => {
    const [rest = "", ...more] = decoder.write(bytes).split("\n");
    add(rest);
    for (const next of more) {
      take(line.replace(/\r$/, ""));
      line = "";
      add(next);
    }
  });
  stream.on("end", () => line !== "" && take(line));
  stream.on("error", () => undefined);
}

/** What the set-up's service writes for the other services, as systemd's rules for environment files read it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { quoted } from "../../../../systemd/units/given.ts";

/** Undoes the quoting by the rules of systemd.exec(5): in double quotes, a backslash escapes those four characters. */
const read = (text: string): string => text.slice(1, -1).replace(/\\([\\"$`])/g, "$1");

test("every value comes back as it was", () => {
  for (const value of ["", "plain", "two words", "#no comment", ' "quoted" ', "a\\b", "$HOME `id`", "ümlaut €", "'single'", "a=b;c"]) {
    assert.equal(read(quoted("NAME", value)), value);
    assert.match(quoted("NAME", value), /^"(?:[^"\\]|\\[\\"$`])*"$/);
  }
});

test("a value that would begin another line is refused", () => {
  for (const value of ["a\nLD_PRELOAD=x", "a\r", "a\0b"]) assert.throws(() => quoted("NAME", value), /NAME has a line break/);
});

/** A tree in sandboxes whose paths are longer than the kernel takes in one piece. */
import assert from "node:assert/strict";
import type { Api } from "./api.ts";
import { runPython } from "./trees.ts";

export const depth = 3_000;

const begin = `
import hashlib, os, sys
os.chdir(sys.argv[1])
top = os.open(".", os.O_RDONLY)
`;

/** At several depths there are a file with a hole and a link to a file at the top, and every folder has a time of its own. */
const make = `${begin}
with open("at-the-top", "w") as file: file.write("top")
for level in range(${depth}):
    os.mkdir("deepdeepdeep")
    os.chdir("deepdeepdeep")
    if level % 500 == 499:
        os.link("at-the-top", "link", src_dir_fd=top)
        with open("holes", "wb") as file:
            file.seek(8 << 20)
            file.write(b"%d" % level)
        os.setxattr("holes", "user.level", b"%d" % level)
        os.chmod("holes", 0o4711)
with open("end", "w") as file: file.write("end")
os.fchdir(top)
for level in range(${depth}):
    os.utime(".", ns=(1, 1600000000000000001 + level))
    os.chdir("deepdeepdeep")
`;

/** Goes down and says what is there. Which files are the same is not asked: a snapshot of such a tree has them apart. */
const describe = `${begin}
digest = hashlib.sha256()
for level in range(${depth} + 1):
    st = os.stat(".")
    digest.update(repr((level, st.st_mode, st.st_uid, st.st_mtime_ns if level < ${depth} else 0, sorted(os.listdir(".")))).encode())
    if "holes" in os.listdir("."):
        st = os.stat("holes")
        print(level, oct(st.st_mode), st.st_size, st.st_blocks < 2000, os.getxattr("holes", "user.level"), open("link").read())
    if level < ${depth}: os.chdir("deepdeepdeep")
print(open("end").read(), digest.hexdigest(), os.stat("end").st_size)
`;

export const makeDeepTree = async (api: Api, id: string, dir: string): Promise<unknown> => runPython(api, id, make, dir);

/** Everything about the tree that copies have in common. */
export async function describeDeepTree(api: Api, id: string, dir: string): Promise<string> {
  const text = await runPython(api, id, describe, dir);
  assert.match(text, /\nend [0-9a-f]{64} 3\n$/);
  return text;
}

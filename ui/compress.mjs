// Compresses the built files once, at the build, instead of for every visitor.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const built = process.argv[2];
for (const name of readdirSync(built, { recursive: true })) {
    if (!/\.(js|css|svg|html)$/.test(name)) continue;
    const content = readFileSync(join(built, name));
    writeFileSync(join(built, `${name}.gz`), gzipSync(content, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
    writeFileSync(join(built, `${name}.br`), brotliCompressSync(content, { params }));
}

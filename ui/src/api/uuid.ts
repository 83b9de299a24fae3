/** On plain HTTP from another host, browsers have random bytes but no crypto.randomUUID. */
if (!("randomUUID" in crypto)) Object.assign(crypto, { randomUUID });

export function randomUUID(): string {
  const bytes = Uint8Array.from(new Uint8Array(16), (_, index) => setVersionBits(index, randomByte()));
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function randomByte(): number {
  return crypto.getRandomValues(new Uint8Array(1))[0] ?? 0;
}

function setVersionBits(index: number, byte: number): number {
  if (index === 6) return (byte & 0x0f) | 0x40;
  return index === 8 ? (byte & 0x3f) | 0x80 : byte;
}
